"""A website whose pages are looked at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.looks.visited import Website, website


@pytest.fixture
def web() -> Iterator[tuple[Website, str]]:
    with website() as found:
        yield found
