"""Published files over HTTP: what is served, in which form, and what is not there."""

from __future__ import annotations

import gc
import gzip
import os
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client, TestResponse

from deploy.web.static_files import StaticFiles, open_below
from shared.config.sites.site import Site

XML = b'<?xml version="1.0" encoding="UTF-8"?>\n<urlset/>\n'


class Browser(Client):
    """Reads each answer to its end and closes it, as every WSGI server does."""

    def open(self, *args: Any, **options: Any) -> TestResponse:
        return super().open(*args, buffered=True, **options)


def site(base_url: str, root: Path) -> Site:
    return Site(base_url=base_url, web_root=root, tokens=("0123456789abcdef",))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "public"
    root.mkdir()
    (root / "sitemap.xml").write_bytes(XML)
    (root / "posts-1.xml.gz").write_bytes(gzip.compress(XML, mtime=0))
    (root / "robots.txt").write_text("User-agent: *\n")
    (root / "sitemap.css").write_text("urlset {}\n")
    (root / "sitemap.html").write_text("<!doctype html>\n")
    (root / "atom.xml").write_text("<feed/>\n")
    (root / "rss.xml").write_text("<rss/>\n")
    (root / "thing.bin").write_bytes(b"\0")
    (root / ".htpasswd").write_text("secret\n")
    (tmp_path / "outside.txt").write_text("secret\n")
    return root


@pytest.fixture
def client(root: Path) -> Client:
    return Browser(StaticFiles({"demo": site("http://localhost/", root)}))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sitemap.xml", "application/xml"),
        ("posts-1.xml.gz", "application/gzip"),
        ("robots.txt", "text/plain; charset=utf-8"),
        ("sitemap.css", "text/css; charset=utf-8"),
        ("sitemap.html", "text/html; charset=utf-8"),
        ("atom.xml", "application/atom+xml"),
        ("rss.xml", "application/rss+xml"),
        ("thing.bin", "application/octet-stream"),
    ],
)
def test_a_file_is_served_byte_for_byte_with_its_type(
    client: Client, root: Path, name: str, kind: str
) -> None:
    answer = client.get(f"/{name}")

    assert answer.status_code == 200
    assert kind == answer.headers["Content-Type"]
    assert (root / name).read_bytes() == answer.data
    assert "Content-Encoding" not in answer.headers
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_head_gives_the_headers_of_get_and_no_body(client: Client) -> None:
    head, get = client.head("/sitemap.xml"), client.get("/sitemap.xml")

    assert head.data == b""
    assert dict(get.headers) == dict(head.headers)
    assert str(len(XML)) == head.headers["Content-Length"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(client: Client, method: str) -> None:
    answer = client.open("/sitemap.xml", method=method)

    assert answer.status_code == 405
    assert answer.headers["Allow"] == "GET, HEAD"


def test_an_unchanged_file_is_not_sent_again(client: Client) -> None:
    seen = client.get("/sitemap.xml").headers

    for asked in (
        {"If-None-Match": seen["ETag"]},
        {"If-None-Match": f'"other", W/{seen["ETag"]}'},
        {"If-Modified-Since": seen["Last-Modified"]},
    ):
        answer = client.get("/sitemap.xml", headers=asked)
        assert (answer.status_code, answer.data) == (304, b"")
        assert seen["ETag"] == answer.headers["ETag"]


def test_a_replaced_file_of_the_same_size_is_sent_again(client: Client, root: Path) -> None:
    seen = client.get("/sitemap.xml").headers
    other = root / "new"
    other.write_bytes(XML.upper())
    at = (root / "sitemap.xml").stat().st_mtime_ns + 1_000_000_000
    os.utime(other, ns=(at, at))
    other.replace(root / "sitemap.xml")

    for asked in (
        {"If-None-Match": seen["ETag"]},
        {"If-Modified-Since": seen["Last-Modified"]},
        # a matching tag decides, whatever the date (RFC 9110, 13.2.2)
        {"If-None-Match": seen["ETag"], "If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"},
    ):
        answer = client.get("/sitemap.xml", headers=asked)
        assert (200, XML.upper()) == (answer.status_code, answer.data)


def encoded(client: Client, accepts: str | None) -> TestResponse:
    headers = {} if accepts is None else {"Accept-Encoding": accepts}
    answer = client.get("/posts-1.xml", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/xml"
    assert answer.headers["Vary"] == "Accept-Encoding"
    return answer


@pytest.mark.parametrize("accepts", ["gzip", "br, gzip;q=0.5", "*", "deflate, GZIP"])
def test_a_packed_file_goes_out_packed_to_who_takes_gzip(
    client: Client, root: Path, accepts: str
) -> None:
    answer = encoded(client, accepts)

    assert answer.headers["Content-Encoding"] == "gzip"
    assert (root / "posts-1.xml.gz").read_bytes() == answer.data
    assert str(len(answer.data)) == answer.headers["Content-Length"]


@pytest.mark.parametrize("accepts", [None, "", "identity", "br", "gzip;q=0", "gzip;q=0, *"])
def test_a_packed_file_goes_out_unpacked_to_who_does_not(
    client: Client, accepts: str | None
) -> None:
    answer = encoded(client, accepts)

    assert "Content-Encoding" not in answer.headers
    assert answer.data == XML


def test_packed_and_unpacked_have_different_tags(client: Client) -> None:
    packed, plain = encoded(client, "gzip"), encoded(client, None)

    assert packed.headers["ETag"] != plain.headers["ETag"]
    again = client.get("/posts-1.xml", headers={"If-None-Match": plain.headers["ETag"]})
    assert again.status_code == 304


@pytest.mark.parametrize(
    "path",
    [
        "/../outside.txt",
        "/x/../../outside.txt",
        "/%2e%2e/outside.txt",
        "/..%2foutside.txt",
        "//outside.txt",
        "/./sitemap.xml",
        "/.htpasswd",
        "/.hidden/x",
        "/sitemap.xml/",
        "/sitemap.xml/x",
        "/sitemap.xml%00.txt",
        "/%ff",
        "/" + "x" * 5000,
        "/absent.xml",
        "/folder",
        "/link.txt",
        "/linked/outside.txt",
        "/fifo",
    ],
)
def test_nothing_but_regular_files_of_the_web_root_is_there(
    client: Client, root: Path, path: str
) -> None:
    (root / "folder").mkdir()
    (root / "link.txt").symlink_to(root.parent / "outside.txt")
    (root / "linked").symlink_to(root.parent)
    (root / ".hidden").mkdir()
    (root / ".hidden" / "x").write_text("secret\n")
    os.mkfifo(root / "fifo")

    answer = client.get(path)

    assert answer.status_code == 404
    assert b"secret" not in answer.data


def test_an_absolute_name_does_not_leave_the_web_root(root: Path) -> None:
    assert open_below(root, os.fsencode(root.parent / "outside.txt")) is None


def test_files_in_folders_are_served(client: Client, root: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "c.txt").write_text("deep\n")

    assert client.get("/a/b/c.txt").data == b"deep\n"


def test_the_root_names_the_sitemap(client: Client) -> None:
    assert b"http://localhost/sitemap.xml" in client.get("/").data


def test_a_missing_web_root_is_an_empty_one(tmp_path: Path) -> None:
    absent = Browser(StaticFiles({"demo": site("http://localhost/", tmp_path / "absent")}))

    assert absent.get("/sitemap.xml").status_code == 404


def test_without_sites_there_are_no_files() -> None:
    assert Browser(StaticFiles({})).get("/sitemap.xml").status_code == 404


def test_the_host_chooses_the_site_and_an_unknown_one_gets_the_first(tmp_path: Path) -> None:
    bases = {
        "one": "http://one.example/",
        "two": "http://two.example:8080/",
        "blog": "http://one.example/blog/",
    }
    for name in bases:
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text(name)
    client = Browser(
        StaticFiles({name: site(base, tmp_path / name) for name, base in bases.items()})
    )

    def get(host: str, path: str = "/x.txt") -> bytes:
        return client.get(path, headers={"Host": host}).data

    assert get("one.example") == b"one"
    assert get("ONE.example") == b"one"
    assert get("two.example:8080") == b"two"
    assert get("two.example") == b"one"
    assert get("unknown.example") == b"one"
    assert get("one.example", "/blog/x.txt") == b"blog"


def test_a_reader_that_began_before_a_replacement_gets_the_old_file_whole(root: Path) -> None:
    file = open_below(root, b"sitemap.xml")
    assert file is not None
    with file:
        begin = file.read(10)
        (root / "new").write_bytes(b"another")
        (root / "new").replace(root / "sitemap.xml")
        assert begin + file.read() == XML


def test_no_descriptor_is_left_open(client: Client) -> None:
    gc.collect()  # what other tests left goes when it likes
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        tag = client.get("/sitemap.xml").headers["ETag"]
        client.head("/sitemap.xml")
        client.get("/sitemap.xml", headers={"If-None-Match": tag})
        client.get("/posts-1.xml")
        client.get("/absent/x")
        client.get("/")

    assert before >= len(os.listdir("/proc/self/fd"))
