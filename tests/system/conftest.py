"""A running system for every test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.driver import System


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    """A running system of one test's own."""
    system = System(tmp_path / "home")
    system.start()
    yield system
    if system.process.poll() is None:
        assert system.stop() == 0
