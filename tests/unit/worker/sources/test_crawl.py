"""A crawl of a site over real HTTP: what it finds, obeys, is bounded by, and goes on with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from shared.errors import SourceError
from tests.unit.worker.sources.cms import Asked, Reply, served
from worker.sources import (
    PARTIAL,
    Item,
    Note,
    RecordRefusal,
    SourceOptions,
    SourceRecord,
    public,
    read,
)

FAST = "#rate=50"
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sitemapd"


class Website:
    """Pages by their paths: the links of each, or a whole answer."""

    def __init__(self, **pages: list[str] | Reply) -> None:
        self.pages = {f"/{path.removeprefix('home')}": page for path, page in pages.items()}
        self.asked: list[Asked] = []

    def __call__(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        page = self.pages.get(asked.path, Reply(b"", 404))
        return page if isinstance(page, Reply) else html(*page)

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]


def html(*links: str, head: str = "", **headers: str) -> Reply:
    shown = "".join(link if link.startswith("<") else f'<a href="{link}">x</a>' for link in links)
    said = {"Content-Type": "text/html; charset=utf-8"}
    said |= {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(f"<!doctype html><head>{head}</head>{shown}".encode(), 200, said)


def crawl(url: str, options: str = FAST, **access: str) -> list[Item]:
    return list(read(f"crawl:{url}/{options}", SourceOptions(**access)))


def paths(items: list[Item], url: str) -> set[str]:
    return {item.loc.removeprefix(url) for item in items if isinstance(item, SourceRecord)}


def refused(items: list[Item], url: str) -> dict[str, str]:
    """Rule of each page that was left out."""
    return {
        (item.loc or "").removeprefix(url): item.rule
        for item in items
        if isinstance(item, RecordRefusal) and not item.whole
    }


def test_linked_pages_are_found_once_with_their_dates() -> None:
    dated = html("/", "/a", "b#part", Last_Modified="Fri, 20 Nov 2026 10:00:00 GMT")
    site = Website(
        home=["/a", "b", "mailto:x@example.com", "/gone"], a=dated, b=["/a?page=2"],
        image=Reply(b"x"),
    )  # fmt: skip
    with served(site) as url:
        items = crawl(url)
        assert paths(items, url) == {"/", "/a", "/b", "/a?page=2"}
        assert refused(items, url) == {}
    dates = {item.loc.removeprefix(url): item.lastmod for item in items if hasattr(item, "lastmod")}
    assert dates["/a"] == "2026-11-20T10:00:00+00:00"
    assert dates["/b"] is None
    assert sorted(site.paths()) == ["/", "/a", "/a", "/b", "/gone", "/robots.txt"]
    assert isinstance(items[-1], Note)
    assert items[-1].rule == PARTIAL  # nothing may be deleted by it


def test_what_is_to_be_left_out_is_left_out() -> None:
    with served(lambda _: html()) as other:
        canonical = f'<link rel="canonical" href="{other}/x">'
        site = Website(
            **{"robots.txt": Reply(b"User-agent: *\nDisallow: /secret", 200)},
            home=["/secret/a", "/noindex", "/header", "/canonical", "/moved", "/nofollow", "/ours"],
            noindex=html("/found", head='<meta name="ROBOTS" content="noindex, follow">'),
            header=html(X_Robots_Tag="noindex"),
            canonical=html(head=canonical),
            nofollow=html("/never", head='<meta name="robots" content="nofollow">'),
            ours=html('<a rel="nofollow" href="/never">x</a>', X_Robots_Tag="otherbot: noindex"),
            found=[], never=[],
        )  # fmt: skip
        with served(site) as url:
            items = crawl(url)
    assert paths(items, url) == {"/", "/nofollow", "/ours", "/found"}
    assert refused(items, url) == {"/noindex": "L8", "/header": "L8", "/canonical": "L8"}
    assert {"/secret/a", "/never"}.isdisjoint(site.paths())


def test_no_other_site_is_asked_not_even_by_a_redirect() -> None:
    """RELIABILITY T22."""
    elsewhere: list[str] = []

    def other(asked: Asked) -> Reply:
        elsewhere.append(asked.path)
        return html()

    with served(other) as target:
        moved = Reply(b"", 302, {"Location": f"{target}/stolen"})
        site = Website(home=["/moved", f"{target}/linked", "/here"], moved=moved, here=[])
        with served(site) as url:
            assert paths(crawl(url), url) == {"/", "/here"}
    assert elsewhere == []


def test_only_pages_below_the_directory_of_the_first_are_read() -> None:
    site = Website(**{"blog/": ["/blog/a", "/shop"], "blog/a": []}, shop=[])
    with served(site) as url:
        items = list(read(f"crawl:{url}/blog/{FAST}", SourceOptions()))
        assert paths(items, url) == {"/blog/", "/blog/a"}
    assert "/shop" not in site.paths()


def test_a_page_that_fails_is_unknown() -> None:
    site = Website(home=["/broken"], broken=Reply(b"", 501))
    with served(site) as url:
        assert refused(crawl(url), url) == {"/broken": "crawl"}


def chain(length: int) -> Website:
    site = Website()
    site.pages = {f"/{n or ''}": [f"/{n + 1}"] for n in range(length)}
    return site


@pytest.mark.parametrize(
    ("options", "least", "most"), [("#rate=50,depth=3", 4, 4), ("#rate=50,pages=5", 5, 9)]
)
def test_depth_and_pages_are_bounded(options: str, least: int, most: int) -> None:
    with served(chain(30)) as url:
        assert least <= len(paths(crawl(url, options), url)) <= most


def test_a_crawl_that_was_cut_off_goes_on_where_it_stopped() -> None:
    site = chain(20)
    with served(site) as url:
        first = read(f"crawl:{url}/{FAST}", SourceOptions())
        before = [next(first) for _ in range(5)]
        first.close()  # as an interrupted command does
        items = crawl(url)
        assert paths(before, url) < paths(items, url)
        assert paths(items, url) == set(site.pages)
    asked = [path for path in site.paths() if path != "/robots.txt"]
    assert len(asked) <= len(site.pages) + 2  # the last, and the one behind it that is not there


def test_a_crawl_that_was_killed_begins_anew(cache: Path) -> None:
    site = chain(5)
    with served(site) as url:
        first = read(f"crawl:{url}/{FAST}", SourceOptions())
        next(first)
        first.close()
        (folder,) = cache.glob("crawl-*")
        (folder / "ended.json").unlink()
        (folder / "job" / "requests.seen").write_text("nonsense")
        assert paths(crawl(url), url) == set(site.pages)
    assert not list(cache.glob("crawl-*"))


def test_a_key_is_sent_and_never_shown() -> None:
    def guarded(asked: Asked) -> Reply:
        open_ = asked.headers.get("authorization") == "Basic dTpjYW5hcnk="
        return html() if open_ else Reply(b"", 401)

    with served(guarded) as url:
        assert paths(crawl(url, key="u:canary"), url) == {"/"}
        with pytest.raises(SourceError, match="found no page") as caught:
            crawl(url, key="u:canary-wrong")
        assert "canary" not in str(caught.value)
    assert "canary" not in public(f"crawl:{url}/")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/var/www", "http or https URL"),
        ("https://u:canary@www.example.com/", "source_key"),
        ("https://www.example.com/#speed=3", "no option speed"),
        ("https://www.example.com/#rate=1000", "from 0.01 to 50"),
        ("https://www.example.com/#rate=fast", "from 0.01 to 50"),
    ],
)
def test_a_wrong_option_is_named(address: str, said: str) -> None:
    with pytest.raises(SourceError, match=said) as caught:
        list(read(f"crawl:{address}", SourceOptions()))
    assert "canary" not in str(caught.value)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scrapy", None)
    with pytest.raises(SourceError, match=r"pip install 'sitemapd\[crawl\]'"):
        list(read("crawl:https://www.example.com/", SourceOptions()))


def test_a_directory_of_somebody_else_is_not_used(cache: Path, tmp_path: Path) -> None:
    cache.parent.mkdir()
    cache.symlink_to(tmp_path)
    with pytest.raises(SourceError, match="belongs to somebody else"):
        list(read("crawl:https://www.example.com/", SourceOptions()))


def test_what_was_chosen_is_shown_with_the_address() -> None:
    """A command that was cut off says how to go on."""
    source = "crawl:https://www.example.com/#rate=1"
    assert public(source) == source
    assert public("strapi:https://a.example/?key=canary#post") == "strapi:https://a.example/#post"
