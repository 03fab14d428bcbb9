"""What unit tests share: settings from text, in an environment of their own; sources to read."""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from pathlib import Path

import pytest

from shared.config import settings
from shared.config.settings import Settings
from tests.unit.configured import Load
from tests.unit.worker.sources.reading import Put


@pytest.fixture
def environment() -> Iterator[MutableMapping[str, str]]:
    """What is put into it is in the environment during the test, and no other setting is."""
    before = dict(os.environ)
    for name in Settings.model_fields:
        os.environ.pop(f"SITEMAPD_{name.upper()}", None)
    yield os.environ
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def load(tmp_path: Path, environment: MutableMapping[str, str]) -> Load:  # noqa: ARG001
    """Settings from the text of a TOML file."""

    def from_text(text: str) -> Settings:
        path = tmp_path / settings.FILE
        path.write_text(text, encoding="utf-8")
        return settings.load(path)

    return from_text


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Writes a source to read; its path."""

    def write(content: str | bytes, name: str = "s.xml") -> str:
        data = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(data)
        return str(tmp_path / name)

    return write
