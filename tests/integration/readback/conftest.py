"""Engines on loopback, and the site `site` that reads back from those of a test's `tables`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.integration.readback.reading import ReadingRig, bing_table
from tests.integration.rig import BASE
from tests.integration.webmasters import Bing, Yandex, serving


@pytest.fixture
def bing() -> Iterator[Bing]:
    with serving(Bing(BASE.rstrip("/"))) as server:
        yield server


@pytest.fixture
def yandex() -> Iterator[Yandex]:
    with serving(Yandex()) as server:
        yield server


@pytest.fixture
def tables(bing: Bing) -> dict[str, Any]:
    return {"bing": bing_table(bing.url)}


@pytest.fixture
def site(store: redis.Redis, tmp_path: Path, tables: dict[str, Any]) -> ReadingRig:
    return ReadingRig(store, tmp_path / "public", tables)
