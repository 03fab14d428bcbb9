"""Reading over HTTP, against a real server on loopback."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from shared.errors import SourceError
from worker.sources import RecordRefusal, SourceRecord, estimate, read
from worker.sources.source_fetch import same_site
from worker.sources.source_streams import EXPANSION_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


class Site:
    """A small web site: `pages` maps a path to (status, headers, body)."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[str] = []
        self.url = ""

    def put(self, path: str, body: str | bytes, **headers: str) -> str:
        data = body.encode() if isinstance(body, str) else body
        fixed = {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages[path] = (200, fixed, data)
        return self.url + path

    def redirect(self, path: str, to: str) -> str:
        self.pages[path] = (302, {"Location": to}, b"")
        return self.url + path


@pytest.fixture
def site() -> Iterator[Site]:
    served = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            status, headers, body = served.pages.get(self.path, (404, {}, b"gone"))
            self.send_response(status)
            self.send_header("Content-Length", headers.pop("Length", str(len(body))))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep the test's output quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


def urlset(*locs: str) -> str:
    body = "".join(f"<url><loc>{loc}</loc></url>" for loc in locs)
    return f"<urlset {NS}>{body}</urlset>"


def index(*locs: str) -> str:
    body = "".join(f"<sitemap><loc>{loc}</loc></sitemap>" for loc in locs)
    return f"<sitemapindex {NS}>{body}</sitemapindex>"


def test_an_index_is_followed_and_a_missing_child_refused(site: Site) -> None:
    site.put("/a/one.xml", urlset("https://a.example/1"))
    site.put("/two.xml.gz", gzip.compress(urlset("https://a.example/2").encode()))
    site.put("/list.txt", "https://a.example/3\n")
    top = site.put(
        "/a/index.xml", index("one.xml", "/two.xml.gz", "/missing.xml", f"{site.url}/list.txt")
    )
    items = list(read(f"sitemap:{top}"))

    assert [item.loc for item in items if isinstance(item, SourceRecord)] == [
        "https://a.example/1",
        "https://a.example/2",
        "https://a.example/3",
    ]
    (refusal,) = [item for item in items if isinstance(item, RecordRefusal)]
    assert (f"{top}#3", "N4", "/missing.xml") == (refusal.where, refusal.rule, refusal.loc)
    assert "404" in refusal.detail
    assert estimate(top) is None


def test_an_index_that_lists_itself_is_read_once_more_and_refused(site: Site) -> None:
    top = site.put("/index.xml", index("/index.xml"))
    (refusal,) = read(top)

    assert isinstance(refusal, RecordRefusal)
    assert refusal.rule == "N1"
    assert site.asked == ["/index.xml", "/index.xml"]


def test_children_on_other_hosts_and_schemes_are_never_asked(site: Site) -> None:
    elsewhere = site.url.replace("127.0.0.1", "localhost")
    site.redirect("/hop.xml", f"{elsewhere}/secret")
    top = site.put(
        "/index.xml", index(f"{elsewhere}/secret", "file:///etc/hostname", "/hop.xml", "http://[")
    )
    items = list(read(top))

    assert [item.rule for item in items if isinstance(item, RecordRefusal)] == [
        "N2",
        "N4",
        "N2",
        "N4",
    ]
    assert site.asked == ["/index.xml", "/hop.xml"]


@pytest.mark.parametrize("kind", ["sitemap", "wordpress"])
def test_no_first_document_is_followed_to_another_host(site: Site, kind: str) -> None:
    """RELIABILITY T22: the server of the address that was given decides nothing about others."""
    elsewhere = site.url.replace("127.0.0.1", "localhost")
    site.put("/secret", urlset("https://a.example/1"))
    for path in ("/s", "/s/wp-json/", "/s/wp-json/?_fields=home%2Cnamespaces", "/s/"):
        site.redirect(path, f"{elsewhere}/secret")

    with pytest.raises(SourceError):
        list(read(f"{kind}:{site.url}/s"))

    assert site.asked
    assert "/secret" not in site.asked


def test_a_redirect_to_another_host_is_said_with_its_address(site: Site) -> None:
    elsewhere = site.url.replace("127.0.0.1", "localhost")
    top = site.redirect("/s.xml", f"{elsewhere}/secret")

    with pytest.raises(
        SourceError, match=r"redirects to another site, http://localhost:\d+/secret"
    ):
        list(read(top))
    with pytest.raises(SourceError, match="no http or https"):
        list(read(site.redirect("/f.xml", "file:///etc/hostname")))


@pytest.mark.parametrize(
    ("child", "same"),
    [
        ("https://www.a.example/s.xml", True),
        ("http://a.example:80/s.xml", True),
        ("https://a.example:6379/s.xml", False),
        ("https://b.a.example/s.xml", False),
        ("ftp://a.example/s.xml", False),
        ("https:///s.xml", False),
    ],
)
def test_a_site_is_one_host_and_port(child: str, same: bool) -> None:
    assert same_site(child, "https://a.example/index.xml") == same


def test_three_redirects_are_followed_and_a_fourth_is_not(site: Site) -> None:
    site.put("/end.xml", urlset("https://a.example/"))
    for number in range(4):
        site.redirect(f"/{number}", "/end.xml" if number == 0 else f"/{number - 1}")

    assert len(list(read(f"{site.url}/2"))) == 1
    with pytest.raises(SourceError, match="redirects"):
        list(read(f"{site.url}/3"))


def test_a_content_encoding_nobody_asked_for_is_read_only_as_gzip(site: Site) -> None:
    packed = gzip.compress(urlset("https://a.example/").encode())

    assert len(list(read(site.put("/g.xml", packed, Content_Encoding="gzip")))) == 1
    with pytest.raises(SourceError, match="br"):
        list(read(site.put("/b.xml", b"x", Content_Encoding="br")))


def test_a_top_level_error_answer_or_no_answer_is_an_error(site: Site) -> None:
    for source in (f"{site.url}/none.xml", "http://127.0.0.1:1/", "http://[/", "https://"):
        with pytest.raises(SourceError):
            list(read(source))


def test_an_oversize_answer_is_not_read(site: Site) -> None:
    top = site.put("/big.xml", b" " * (EXPANSION_LIMIT + 1))

    with pytest.raises(SourceError, match=f"more than {EXPANSION_LIMIT} bytes"):
        list(read(top))


def test_an_answer_cut_short_is_an_error_not_a_short_list(site: Site) -> None:
    top = site.put("/cut.xml", urlset("https://a.example/"), Length="9999")

    with pytest.raises(SourceError):
        list(read(top))


def test_a_password_in_the_address_is_in_no_report(site: Site) -> None:
    site.put("/s.xml", urlset("", "https://a.example/"))
    items = list(read(f"{site.url.replace('//', '//user:geheim@')}/s.xml"))

    assert len(items) == 2
    assert not any("geheim" in str(item) for item in items)
    with pytest.raises(SourceError) as caught:
        list(read(f"{site.url.replace('//', '//user:geheim@')}/none.xml"))
    assert "geheim" not in str(caught.value)
