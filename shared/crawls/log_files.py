"""Requests of crawlers in access logs, found without parsing the other lines."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader

from shared.crawls.crawlers import TOKENS, CrawlerEngine, engine_of
from shared.crawls.log_lines import LoggedRequest, parse

BLOCK = 1 << 20
LONGEST_LINE = 64 * 1024
"""Bytes. Web servers accept requests of up to 8 KB by default, which escaping makes 32 KB."""

_TOKENS = tuple(token.encode() for token in TOKENS)
_GZIP = b"\x1f\x8b"


class AccessLog:
    """Reader and counter of access logs, one after the other.

    `lines` counts all lines, `engines` those of a crawler by its user agent, `broken` those that
    name one and cannot be parsed, or are too long; others are not parsed. `first_ms` and `last_ms`
    are the times at which the logs begin and end (ms since 1970), None before any was read.
    """

    def __init__(self) -> None:
        self.lines = self.engines = self.broken = 0
        self.first_ms: int | None = None
        self.last_ms: int | None = None

    def read(
        self, file: BufferedReader, seen: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[CrawlerEngine, LoggedRequest]]:
        """The requests of crawlers in `file`, gzip or not.

        `seen` is called after each block. Raises OSError (gzip.BadGzipFile is one) for a file that
        cannot be read to its end; earlier lines count.
        """
        for block in self._blocks(file):
            self.lines += block.count(b"\n") + (not block.endswith(b"\n"))
            self._note_span(block)
            for line in _candidates(block):
                request = parse(line)
                if request is None:
                    self.broken += 1
                elif engine := engine_of(request.agent):
                    self.engines += 1
                    self._note(request.at_ms)
                    yield engine, request
            seen()

    def _blocks(self, file: BufferedReader) -> Iterator[bytes]:
        """Blocks of about `BLOCK` bytes of whole lines, without those that are too long."""
        stream = gzip.GzipFile(fileobj=file, mode="rb") if file.peek(2)[:2] == _GZIP else file
        rest, skipping = b"", False
        while data := _some(stream):
            if skipping:
                _, newline, data = data.partition(b"\n")
                skipping = not newline
            whole, newline, tail = data.rpartition(b"\n")
            if newline:
                yield rest + whole + newline
                rest = b""
            rest += tail
            if len(rest) > LONGEST_LINE:
                rest, skipping = b"", True
                self.lines += 1
                self.broken += 1
        if rest:
            yield rest

    def _note_span(self, block: bytes) -> None:
        """Note the times of the first and last line of a block, which need not be of a crawler."""
        for line in (block.partition(b"\n")[0], block.removesuffix(b"\n").rpartition(b"\n")[2]):
            request = parse(line)
            if request is not None:
                self._note(request.at_ms)

    def _note(self, at_ms: int) -> None:
        if self.first_ms is None or self.last_ms is None:
            self.first_ms = self.last_ms = at_ms
        self.first_ms, self.last_ms = min(self.first_ms, at_ms), max(self.last_ms, at_ms)


def _some(stream: BufferedReader | gzip.GzipFile) -> bytes:
    try:
        # read1: data unpacked before a fault is not lost, as it is with read
        return stream.read1(BLOCK)
    except (EOFError, zlib.error) as error:
        raise gzip.BadGzipFile(str(error)) from error


def _candidates(block: bytes) -> Iterator[bytes]:
    """The lines that hold the name of a crawler anywhere, in order."""
    lower, found = block.lower(), {}
    for token in _TOKENS:
        at = lower.find(token)
        while at >= 0:
            end = lower.find(b"\n", at)
            end = end if end >= 0 else len(lower)
            found[lower.rfind(b"\n", 0, at) + 1] = end
            at = lower.find(token, end)
    for start in sorted(found):
        yield block[start : found[start]]
