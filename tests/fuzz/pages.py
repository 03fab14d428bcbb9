"""Pages of any bytes, with any headers: each says something of its listing, or nothing."""

from __future__ import annotations

from shared.domain.looks.answers import PageAnswer, judge
from shared.sitemap import urls
from worker.looks import fingerprint, page_reader

LOC = "https://www.example.com/a"
_WHOLE = (
    b"text/html; charset=utf-8\0noindex\0<https://a.b/>; rel=canonical\0"
    b'<html lang="en"><head><title>T</title><meta name=robots content="noindex"><base href="/b/">'
    b'<link rel="canonical" href="a"><script type="application/ld+json">{"a": [1]}</script></head>'
    b"<main><p>Text <a href=/x>x</a></p></main></html>"
)
SEEDS = (
    _WHOLE,
    b'text/html; charset="none"\0googlebot: none, max-snippet: 5\0\0<meta name=bingbot content=no>',
    b"application/pdf\0\0\0%PDF-1.7",
)


def page(data: bytes) -> None:
    """A canonical URL is one that could be listed, a language is one, and the page is judged."""
    kind, robots, link, body = (*data.split(b"\0", 3), b"", b"", b"")[:4]
    headers = {
        "content-type": kind.decode("latin-1"), "x-robots-tag": robots.decode("latin-1"),
        "link": link.decode("latin-1"),
    }  # fmt: skip
    words = page_reader.read(LOC, headers, body)
    assert words.canonical != LOC
    assert not words.canonical or urls.absolute(words.canonical) == words.canonical
    assert words.language.isascii()
    seen = fingerprint.of_bytes(body) if words.tree is None else (
        fingerprint.of_html(words.tree, body)
    )  # fmt: skip
    assert len(seen) in {0, fingerprint.SIZE}
    answer = PageAnswer(
        200, "", "", words.noindex, words.canonical, words.language, page_reader.type_of(headers),
        seen,
    )  # fmt: skip
    assert judge(answer, ("de",)).why.isprintable()
