"""A running system for every test that asks for one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.system.driver import System
from tests.system.nginx import needs
from tests.system.parts import Parts, servers


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The system's own browser."""
    needs("chromium")
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        yield browser
        browser.close()


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    """A running system of one test's own."""
    system = System(tmp_path / "home")
    system.start()
    yield system
    system.end()


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    """The parts one by one, none of them started; those that a test starts end with it."""
    parts = Parts(tmp_path / "home", servers()[-1])
    yield parts
    for name in reversed([*parts.running]):
        parts.stop(name)
