"""The driver of `make faults` finds mistakes that are planted into what it drives (N1)."""

from __future__ import annotations

import re

import pytest

from tests.system.test_faults import faults


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("mistake", "shown"), [("early-ack", r"\(c\)"), ("index-first", "is ahead|is not there")]
)
def test_the_driver_finds_a_planted_mistake(mistake: str, shown: str) -> None:
    said = faults("--planted", mistake)

    assert said.returncode == 1
    assert re.search(shown, said.stderr)
