"""Fingerprint of what readers see of a page: its title, its main text with the links in it, and its
structured data. Header, navigation, footer, styles and scripts do not count, so neither a template
nor a save that changed nothing moves it.

Needs the library resiliparse (`sitemapd[pages]`), whose extractor knows the main content; without
it there are no fingerprints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Any

SIZE = 8
_PASSING = frozenset({
    "dateModified", "sdDatePublished", "interactionStatistic", "userInteractionCount",
    "commentCount", "interactionCount", "priceValidUntil",
})  # fmt: skip
"""Members of structured data that change by themselves, or with each save."""
_DEEPEST = 32


@lru_cache(1)
def _extractor() -> Any:
    try:
        from resiliparse.extract.html2text import extract_plain_text
        from resiliparse.parse.html import HTMLTree
    except ImportError:
        return None

    def text_of(html: str) -> str:
        return str(extract_plain_text(
            HTMLTree.parse(html), preserve_formatting=False, main_content=True, links=True,
            alt_texts=True, noscript=False, form_fields=False,
        ))  # fmt: skip

    return text_of


def of_html(tree: Any, body: bytes) -> bytes:
    """Return the fingerprint of an HTML page, whose root element is `tree`; empty without the
    library.
    """
    extract = _extractor()
    if extract is None:
        return b""
    encoding = tree.getroottree().docinfo.encoding or "utf-8"
    try:
        text = body.decode(encoding, "replace")
    except LookupError:
        text = body.decode("utf-8", "replace")
    title = " ".join((tree.findtext(".//title") or "").split())
    parts = [title, " ".join(extract(text).split()), *sorted(_structured(tree))]
    return _digest("\0".join(parts).encode("utf-8", "replace"))


def of_bytes(body: bytes) -> bytes:
    """Return the fingerprint of a document that is no HTML."""
    return _digest(body) if _extractor() is not None else b""


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=SIZE).digest()


def _structured(tree: Any) -> Iterator[str]:
    """Yield the JSON-LD of a page, in one form; text that is no JSON is left out."""
    for script in tree.iter("script"):
        if (script.get("type") or "").partition(";")[0].strip().lower() != "application/ld+json":
            continue
        try:
            found = json.loads(script.text or "")
            yield json.dumps(_lasting(found, _DEEPEST), sort_keys=True)
        except (ValueError, RecursionError):
            continue


def _lasting(value: Any, depth: int) -> Any:
    """Return `value` without what changes by itself, and without what lies deeper than `depth`."""
    if depth == 0:
        return None
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if name not in _PASSING}
        return {name: _lasting(each, depth - 1) for name, each in kept.items()}
    return [_lasting(each, depth - 1) for each in value] if isinstance(value, list) else value
