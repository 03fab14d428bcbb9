"""Edit our `Sitemap:` lines in a site's robots.txt, and no other byte (PROTOCOL R1-R11).

    # BEGIN sitemapd
    Sitemap: https://www.example.com/sitemap.xml
    # END sitemapd

Everything outside these two markers stays as it is (RELIABILITY T18). A new block goes to the very
end, where it can neither split a group (R4) nor share line 1 with a byte order mark (R5); no blank
line is added, as the standard library's parser ends groups at those. An existing block is edited in
place. If the file's last line has no line break, one is added and noted in the marker, so that
removing the block restores the original bytes.
A file that holds nothing but our block allows everything, as a missing file does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from shared.errors import RobotsError
from shared.sitemap.urls import MAX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BYTES = 500 * 1024
"""Bytes of a robots.txt that crawlers read; later lines are not seen (PROTOCOL R8)."""

_GUARD_NOTE = b", including the line break before"
_BOM = b"\xef\xbb\xbf"
_OWNER = re.compile(r"[A-Za-z0-9_-]{1,64}")
_URL = re.compile(r"https?://[\x21\x22\x24-\x7e]+")
# "Site-map" is a typo that crawlers accept (R9). A line 1 behind a byte order mark does not match,
# and must not: some parsers do not see it (R5).
_SITEMAP = re.compile(rb"[ \t]*site-?map[ \t]*:[ \t]*([^ \t#\r\n]+)[ \t]*(?:#.*)?", re.IGNORECASE)
_OURS = re.compile(rb"[ \t]*(?:site-?map[ \t]*:.*|#.*)?", re.IGNORECASE)


class _Cut(NamedTuple):
    """A robots.txt split at our markers."""

    before: bytes
    after: bytes
    newline: bytes
    guard: bool  # the line break at the end of `before` is ours


def edit(existing: bytes | None, sitemaps: Sequence[str], *, owner: str = "sitemapd") -> bytes:
    """The robots.txt that names `sitemaps`; the same bytes if it does so already.

    `existing` is None if there is no file, the same as an empty one. `sitemaps` are absolute
    URLs; those that a line outside our block names already are not repeated (R9), and with none
    left our block is removed. `owner` is the name in the markers, `[A-Za-z0-9_-]{1,64}`.
    Raises RobotsError if an edit would not be safe; the caller leaves the file unchanged.
    """
    if not _OWNER.fullmatch(owner):
        raise RobotsError("the owner's name may hold ASCII letters, digits, - and _ only")
    for url in sitemaps:
        if len(url) > MAX_LENGTH or not _URL.fullmatch(url):
            detail = f"send an absolute one in ASCII, without #, of at most {MAX_LENGTH} characters"
            raise RobotsError(f"{url[:80]!a} cannot be listed in robots.txt: {detail}")
    old = existing or b""
    _check_readable(old)
    cut = _cut(old, owner)
    named = _named(cut.before) | _named(cut.after)
    urls = [url for url in dict.fromkeys(sitemaps) if url.encode() not in named]
    new = _with_block(cut, urls, owner) if urls else _without_block(cut)
    if len(new) > MAX_BYTES:
        raise _too_large(len(new))
    return new


def sitemaps(content: bytes) -> frozenset[str]:
    """The addresses that a robots.txt names, in the part that crawlers read (PROTOCOL R8, R9)."""
    return frozenset(url.decode(errors="replace") for url in _named(content[:MAX_BYTES]))


def _check_readable(old: bytes) -> None:
    if len(old) > MAX_BYTES:
        raise _too_large(len(old))
    try:
        old.decode("utf-8")
    except UnicodeDecodeError as error:
        detail = f"robots.txt is not UTF-8 (byte {error.start}): save it as UTF-8"
        raise RobotsError(detail) from None
    if b"\x00" in old:
        raise RobotsError("robots.txt holds NUL bytes, as UTF-16 does: save it as UTF-8")


def _cut(old: bytes, owner: str) -> _Cut:
    marker = re.compile(rb"[ \t]*# (BEGIN|END) %b(?![A-Za-z0-9_-])(.*)" % owner.encode())
    lines = old.splitlines(keepends=True)
    marks = [
        (number, match)
        for number, line in enumerate(lines)
        if (match := marker.match(line.removeprefix(_BOM) if number == 0 else line))
    ]
    if not marks:
        newline = b"\r\n" if old.count(b"\r\n") * 2 > old.count(b"\n") else b"\n"
        # a byte order mark alone is an unfinished line too: line 1 stays untouched (R5)
        guard = bool(old) and not old.endswith(b"\n")
        return _Cut(old + newline if guard else old, b"", newline, guard)
    if [match[1] for _, match in marks] != [b"BEGIN", b"END"]:
        raise RobotsError(f"the {owner} markers in robots.txt do not pair: remove all of them")
    (begin, match), (end, _) = marks
    for line in lines[begin + 1 : end]:
        if not _OURS.fullmatch(line.rstrip(b"\r\n")):
            raise RobotsError(f"move the rules out from between the {owner} markers")
    before = b"".join(lines[:begin]) or (_BOM if old.startswith(_BOM) else b"")
    newline = lines[begin][len(lines[begin].rstrip(b"\r\n")) :]
    guard = match[2].rstrip() == _GUARD_NOTE
    return _Cut(before, b"".join(lines[end + 1 :]), newline, guard)


def _named(part: bytes) -> set[bytes]:
    matches = (_SITEMAP.fullmatch(line) for line in part.splitlines())
    return {match[1] for match in matches if match}


def _with_block(cut: _Cut, urls: Sequence[str], owner: str) -> bytes:
    lines = [
        b"# BEGIN " + owner.encode() + (_GUARD_NOTE if cut.guard else b""),
        *(b"Sitemap: " + url.encode() for url in urls),
        b"# END " + owner.encode(),
    ]
    return cut.before + b"".join(line + cut.newline for line in lines) + cut.after


def _without_block(cut: _Cut) -> bytes:
    """Remove the block, and our line break unless text after the block now depends on it."""
    if cut.guard and not cut.after:
        return cut.before.removesuffix(cut.newline)
    return cut.before + cut.after


def _too_large(size: int) -> RobotsError:
    return RobotsError(f"robots.txt comes to {size} bytes, crawlers read {MAX_BYTES}: shorten it")
