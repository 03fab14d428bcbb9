"""Opened document, from a file or an HTTP answer, and the bounds for reading it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path

CHUNK = 64 * 1024
# PROTOCOL F7 allows 52,428,800 bytes; a fifth more is read, so that a slightly oversize file is
# imported with a note, while a decompression bomb ends after 60 MiB.
EXPANSION_LIMIT = 60 * 1024 * 1024

_NONE: Mapping[str, str] = MappingProxyType({})


class Document(AbstractContextManager["Document"]):
    """One opened source: `name` for reports, `file` at its first byte, `place` where it was found.

    `headers` are those of an HTTP answer, with names in lower case; empty for a file.
    """

    def __init__(
        self, name: str, file: IO[bytes], place: Path | str, headers: Mapping[str, str] = _NONE
    ) -> None:
        self.name = name
        self.file = file
        self.place = place
        self.headers = headers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
