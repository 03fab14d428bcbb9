"""Plain text lists of addresses (PROTOCOL F10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.sources.documents import LINE_LIMIT, lines
from worker.sources.extensions import XML_SPACE
from worker.sources.pages import check_loc
from worker.sources.records import STATED, Record, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def addresses(chunks: Iterable[bytes], name: str) -> Iterator[Record | Refusal]:
    """One Record per line that is an absolute URL; blank lines are passed over."""
    for number, data in lines(chunks):
        where = f"{name}#{number}"
        if data is None:
            yield Refusal(where, "F10", f"line {number} is longer than {LINE_LIMIT} bytes")
            continue
        try:
            text = data.decode().strip(XML_SPACE)
        except UnicodeDecodeError as error:
            yield Refusal(where, "F10", f"line {number} is not UTF-8 (byte {error.start + 1})")
            continue
        if text:
            yield _address(text, where)


def _address(text: str, where: str) -> Record | Refusal:
    if "://" not in text or any(space in text for space in "\t\r"):
        return Refusal(where, "F10", "this line is no absolute URL", text[:200])
    return check_loc(text, where) or Record(loc=text, where=where, silent=STATED)
