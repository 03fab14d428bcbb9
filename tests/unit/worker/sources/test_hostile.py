"""XML made to harm who reads it: refused by name, in little memory, and nothing else is opened."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[4]
CANARY = "canary-of-a-file-nobody-named"
MEBIBYTE = 1024 * 1024
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
GOOD = "<url><loc>https://a.example/good</loc></url>"
MOST_GROWN = 40 * MEBIBYTE
"""What any of these may cost; the smallest bomb here would come to 300 MiB."""
READ = """
import json, resource, sys
from worker.sources import SourceRecord, RecordRefusal, read
from shared.errors import SourceError
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
list(read(sys.argv[1]))
for path in sys.argv[2:]:
    before, pages, refused = peak(), [], []
    try:
        for item in read(path):
            if isinstance(item, SourceRecord):
                pages.append(repr(item)[:500])
            elif isinstance(item, RecordRefusal):
                refused.append((item.rule, item.detail[:500]))
    except SourceError as error:
        refused.append(("source", str(error)[:500]))
    print(json.dumps({"pages": pages, "refused": refused, "grown": peak() - before}))
"""


def doctype(subset: str, entries: str, root: str = "urlset") -> str:
    return f'<?xml version="1.0"?><!DOCTYPE {root} {subset}><{root} {NS}>{entries}</{root}>'


def urlset(entries: str, attributes: str = NS) -> str:
    return f"<urlset {attributes}>{GOOD}{entries}{GOOD.replace('good', 'last')}</urlset>"


def loc(text: str) -> str:
    return f"<url><loc>{text}</loc></url>"


def bomb(filler: bytes) -> bytes:
    """300 MiB of `filler` in 300 members of a kilobyte, which are read as one."""
    return gzip.compress(filler * MEBIBYTE) * 300


LAUGHS = '<!ENTITY l0 "ha">' + "".join(
    f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10)
)
LARGE = f'<!ENTITY a "{"x" * 60_000}">'
XI = 'xmlns:xi="http://www.w3.org/2001/XInclude"'

# name: (document with FILE and URL in it, rule it is refused by, whether the pages around are read)
ATTACKS: dict[str, tuple[str | bytes, str, bool]] = {
    "billion laughs": (doctype(f"[{LAUGHS}]", loc("https://a.example/&l9;")), "F3", False),
    "quadratic blow-up": (doctype(f"[{LARGE}]", loc("&a;" * 5_000)), "F3", False),
    "laughs in UTF-16": (
        doctype(f"[{LAUGHS}]", loc("&l9;")).encode("utf-16"), "F3", False,
    ),
    "laughs in gzip": (
        gzip.compress(doctype(f"[{LAUGHS}]", loc("&l9;")).encode()), "F3", False,
    ),
    "laughs behind a long comment": (
        f"<!--{'x' * 60_000}-->" + doctype(f"[{LAUGHS}]", loc("&l9;"))[21:], "F3", False,
    ),
    "laughs in an entry": (urlset(f"<!DOCTYPE a [{LAUGHS}]>{loc('&l9;')}"), "F4", True),
    "laughs in a feed": (doctype(f"[{LAUGHS}]", "<entry>&l9;</entry>", "feed"), "F3", False),
    "a file as an entity": (doctype('[<!ENTITY a SYSTEM "FILE">]', loc("&a;")), "F3", False),
    "a file as an entity, in an entry": (
        urlset(f'<!DOCTYPE a [<!ENTITY a SYSTEM "FILE">]>{loc("&a;")}'), "F4", True,
    ),
    "an address as an entity": (doctype('[<!ENTITY a SYSTEM "URL">]', loc("&a;")), "F3", False),
    "an address as a parameter entity": (
        doctype('[<!ENTITY % a SYSTEM "URL"> %a;]', loc("x")), "F3", False,
    ),
    "an external DTD": (doctype('SYSTEM "URL"', GOOD), "F3", False),
    "a public DTD in small letters": (
        doctype('PUBLIC "x" "URL"', GOOD).replace("DOCTYPE", "doctype"), "F3", False,
    ),
    "XInclude of a file": (
        urlset(loc('<xi:include href="FILE" parse="text"/>'), f"{NS} {XI}"), "F13", True,
    ),
    "XInclude of an address": (
        urlset('<xi:include href="URL"/>' + loc('<xi:include href="URL"/>'), f"{NS} {XI}"),
        "F13", True,
    ),
    "a gzip bomb in an entry": (
        gzip.compress(f"<urlset {NS}><url>".encode()) + bomb(b" "), "F7", False,
    ),
    "a gzip bomb in the prolog": (gzip.compress(b"<!--") + bomb(b"x"), "source", False),
    "gzip in gzip": (gzip.compress(bomb(b"x")), "F9", False),
    "deep nesting": (urlset(f"<url>{'<a>' * 200_000}{'</a>' * 200_000}</url>"), "F4", True),
    "deep nesting in a loc": (urlset(loc("<a>" * 5_000 + "</a>" * 5_000)), "F4", True),
    "a huge attribute": (urlset(f'<url a="{"x" * 20 * MEBIBYTE}">{loc("y")[5:]}'), "F4", True),
    "a huge attribute of the root": (
        urlset("", f'{NS} a="{"x" * 20 * MEBIBYTE}"'), "source", False,
    ),
    "very many attributes": (
        urlset("<url " + " ".join(f'a{n}=""' for n in range(300_000)) + ">" + loc("y")[5:]),
        "F4", True,
    ),
    "very many undeclared prefixes": (
        urlset("<url>" + "".join(f"<p{n}:a/>" for n in range(50_000)) + "</url>"), "F4", True,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def trap() -> Iterator[socket.socket]:
    """Listens, and should never be asked."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


@pytest.fixture(scope="module")
def found(
    trap: socket.socket, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """What one process says of every attack, one after the other."""
    home = tmp_path_factory.mktemp("hostile")
    (home / "secret").write_text(CANARY)
    (home / "warm.xml").write_text(urlset(GOOD))
    address = f"http://127.0.0.1:{trap.getsockname()[1]}/x.dtd"
    paths = []
    for number, (document, _, _) in enumerate(ATTACKS.values()):
        data = document.encode() if isinstance(document, str) else document
        data = data.replace(b"FILE", f"file://{home}/secret".encode())
        paths.append(home / f"{number}.xml")
        paths[-1].write_bytes(data.replace(b"URL", address.encode()))
    done = subprocess.run(
        [sys.executable, "-c", READ, home / "warm.xml", *paths],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert CANARY not in done.stdout + done.stderr
    return dict(zip(ATTACKS, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("name", ATTACKS)
def test_it_is_refused_by_name_in_little_memory(
    found: dict[str, dict[str, Any]], name: str
) -> None:
    _, rule, pages_around = ATTACKS[name]
    said = found[name]

    assert rule in [refusal[0] for refusal in said["refused"]], said
    assert said["grown"] < MOST_GROWN
    assert any("/last" in page for page in said["pages"]) == pages_around, said
    assert len(said["pages"]) <= 2


def test_no_address_in_a_document_is_asked(
    trap: socket.socket, found: dict[str, dict[str, Any]]
) -> None:
    assert len(found) == len(ATTACKS)
    with pytest.raises(BlockingIOError):
        trap.accept()
