"""Plain text lists of addresses (PROTOCOL F10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.sources.records import STATED, RecordRefusal, SourceRecord
from worker.sources.source_streams import LINE_LIMIT, lines
from worker.sources.xml.entry_records import check_loc
from worker.sources.xml.extension_values import XML_SPACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def addresses(chunks: Iterable[bytes], name: str) -> Iterator[SourceRecord | RecordRefusal]:
    """Yield a SourceRecord for each line that is an absolute URL; blank lines are skipped."""
    for number, data in lines(chunks):
        where = f"{name}#{number}"
        if data is None:
            yield RecordRefusal(where, "F10", f"line {number} is longer than {LINE_LIMIT} bytes")
            continue
        try:
            text = data.decode().strip(XML_SPACE)
        except UnicodeDecodeError as error:
            yield RecordRefusal(
                where, "F10", f"line {number} is not UTF-8 (byte {error.start + 1})"
            )
            continue
        if text:
            yield _address(text, where)


def _address(text: str, where: str) -> SourceRecord | RecordRefusal:
    if "://" not in text or any(space in text for space in "\t\r"):
        return RecordRefusal(where, "F10", "this line is no absolute URL", text[:200])
    return check_loc(text, where) or SourceRecord(loc=text, where=where, silent=STATED)
