"""Character encodings of sitemap documents: conversion to UTF-8 before parsing."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from worker.sources.records import SourceCounts

_BOM = b"\xef\xbb\xbf"
_UTF16 = {
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
    b"<\0": "utf-16-le",
    b"\0<": "utf-16-be",
}
_DECLARED = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z][\w.-]{0,30})["']""")
# Named one by one: codecs.lookup also knows zip, hex and others that are not character encodings.
_LEGACY = re.compile(
    r"(iso8859-\d+|cp125\d|koi8-[ru]|gbk|gb2312|gb18030|big5|shift_jis|euc_(jp|kr))"
)


def as_utf8(head: bytes, rest: Iterable[bytes], tally: SourceCounts) -> Iterator[bytes]:
    """Yield the document `head` + `rest` as UTF-8 without byte order mark (PROTOCOL F3).

    UTF-16 is detected by its first bytes, a legacy encoding by the XML declaration; both are noted.
    A declaration that the bytes contradict is noted and ignored. Bytes that do not fit a legacy
    encoding become U+FFFD, which no address may contain.
    """
    name = _encoding(head, tally)
    if name is None:
        yield head.removeprefix(_BOM)
        yield from rest
        return
    tally.add("F3", f"the encoding is {name}, not UTF-8; read as {name}")
    decoder = codecs.getincrementaldecoder(name)("replace")
    yield decoder.decode(head).encode()
    for chunk in rest:
        yield decoder.decode(chunk).encode()
    yield decoder.decode(b"", final=True).encode()


def _encoding(head: bytes, tally: SourceCounts) -> str | None:
    if head[:2] in _UTF16:
        return _UTF16[head[:2]]
    found = _DECLARED.search(head, 0, 4096)
    declared = found[1].decode() if found else "utf-8"
    try:
        known = codecs.lookup(declared).name
    except LookupError:
        known = declared
    if known in {"utf-8", "ascii"}:
        return None
    if _LEGACY.fullmatch(known) and not head.startswith(_BOM):
        return known
    tally.add("F3", f"declares the encoding {declared}, but the bytes are not; read as UTF-8")
    return None
