"""WordPress's REST interface, over real HTTP, with what goes wrong on the way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shared.errors import SourceError
from tests.unit.worker.sources.cms import Asked, Reply, WordPress, served
from worker.sources import Item, RecordRefusal, SourceOptions, SourceRecord, read

HOME = "https://www.example.com/"
KEY = "editor:canary geheim"


@pytest.fixture
def wordpress() -> WordPress:
    return WordPress()


@pytest.fixture
def url(wordpress: WordPress) -> Iterator[str]:
    with served(wordpress) as address:
        yield address


def pages(source: str, access: SourceOptions | None = None) -> list[Item]:
    return list(read(f"wordpress:{source}", access or SourceOptions()))


def locs(items: list[Item]) -> list[str]:
    return [item.loc.removeprefix(HOME) for item in items if isinstance(item, SourceRecord)]


def test_the_public_types_terms_and_the_home_page_are_read(wordpress: WordPress, url: str) -> None:
    for collection in wordpress.rows:
        wordpress.add(collection, 7)

    items = pages(url)

    assert locs(items) == ["", "posts/7/", "pages/7/", "product/7/", "categories/7/", "tags/7/"]
    post, term = items[1], items[4]
    assert isinstance(post, SourceRecord)
    assert isinstance(term, SourceRecord)
    assert (post.where, post.lastmod) == ("posts#7", "2026-05-01T10:00:00Z")
    assert post.extra == {"section": "posts"}
    assert "lastmod" not in post.silent
    assert {"section", "images", "alternates"} <= post.silent
    assert "lastmod" in term.silent


@pytest.mark.parametrize("pretty", [True, False])
def test_more_than_one_answer_is_read_with_or_without_pretty_permalinks(
    wordpress: WordPress, url: str, pretty: bool
) -> None:
    wordpress.pretty = pretty
    for ident in range(1, 251):
        wordpress.add("posts", ident * 3)

    assert locs(pages(f"{url}/"))[1:] == [f"posts/{n * 3}/" for n in range(1, 251)]


@pytest.mark.parametrize("count", [1, 99, 100, 101, 199, 200])
def test_no_page_is_lost_or_doubled_at_the_edges(
    wordpress: WordPress, url: str, count: int
) -> None:
    for ident in range(count):
        wordpress.add("pages", ident + 1)

    assert len(locs(pages(f"{url}#pages"))) == len(set(locs(pages(f"{url}#pages")))) == count


def test_a_deletion_meanwhile_hides_no_other_page(wordpress: WordPress, url: str) -> None:
    """The objects behind it move up, over the edge of an answer that was given already."""
    for ident in range(1, 301):
        wordpress.add("posts", ident)

    def delete(asked: Asked) -> None:
        if asked.parameters["offset"] != "0":
            for ident in range(1, 6):
                wordpress.rows["posts"].pop(ident, None)

    wordpress.instead["/wp/v2/posts"] = delete

    assert set(locs(pages(f"{url}#posts"))) == {f"posts/{n}/" for n in range(1, 301)}


def test_what_is_not_public_is_refused_by_name(wordpress: WordPress, url: str) -> None:
    wordpress.add("posts", 1, content={"protected": True})
    wordpress.add("posts", 2, status="private")
    wordpress.add("posts", 3)
    wordpress.add("posts", 4, link=None)

    found = pages(f"{url}#posts")

    assert locs(found) == ["posts/3/"]
    said = [(item.where, item.rule) for item in found if isinstance(item, RecordRefusal)]
    assert said == [("posts#1", "L8"), ("posts#2", "L8"), ("posts#4", "F13")]


def test_collections_may_be_chosen(wordpress: WordPress, url: str) -> None:
    wordpress.add("posts", 1)
    wordpress.add("users", 2)

    assert locs(pages(f"{url}#users,pages")) == ["users/2/"]
    with pytest.raises(SourceError, match="no collection shop; there are: posts, pages, product"):
        pages(f"{url}#shop")


@pytest.mark.parametrize(
    ("route", "reply"),
    [
        ("/wp/v2/posts", Reply({"code": "rest_forbidden"}, 401)),
        ("/wp/v2/posts", Reply({"code": "rest_cannot_read"}, 403)),
        ("/wp/v2/posts", Reply(b"<h1>Fatal error</h1>", 500)),
        ("/wp/v2/posts", Reply(b"<h1>Maintenance</h1>")),
        ("/wp/v2/posts", Reply(b'[{"id": 1, "link": "https://www.ex')),
        ("/wp/v2/posts", Reply(b'[{"id": 1}]', length=999)),
        ("/wp/v2/posts", Reply([])),
        ("/wp/v2/posts", Reply({"id": 1}, headers={"X-WP-Total": "1"})),
        ("/wp/v2/posts", Reply([{"id": "1"}], headers={"X-WP-Total": "1"})),
        ("/wp/v2/posts", Reply([], headers={"X-WP-Total": "5"})),
        ("/wp/v2/posts", Reply(b"[" * 100_000, headers={"X-WP-Total": "5"})),
        ("/wp/v2/posts", Reply(b"", 302, {"Location": "http://127.0.0.2:1/"})),
        ("/wp/v2/types", Reply([])),
        ("/", Reply(b"<!doctype html>")),
    ],
)
def test_an_answer_that_is_not_whole_is_an_error_and_no_shorter_list(
    wordpress: WordPress, url: str, route: str, reply: Reply
) -> None:
    wordpress.instead[route] = lambda _: reply

    with pytest.raises(SourceError):
        pages(url)


def test_a_site_that_is_no_wordpress_is_named_as_such() -> None:
    with served(lambda _: Reply(b"hello")) as url, pytest.raises(SourceError, match="WordPress"):
        pages(url)
    with pytest.raises(SourceError, match="http or https"):
        pages("ftp://www.example.com/")


def test_a_key_is_sent_and_never_shown(wordpress: WordPress, url: str) -> None:
    wordpress.instead["/wp/v2/posts"] = lambda _: Reply({}, 401)

    with pytest.raises(SourceError) as caught:
        pages(url, SourceOptions(KEY))

    assert {asked.headers["authorization"][:6] for asked in wordpress.asked} == {"Basic "}
    assert "geheim" not in str(caught.value)
    assert "geheim" not in repr(SourceOptions(KEY))
