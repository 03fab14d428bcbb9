"""The members of an event that `event send` has options for."""

from __future__ import annotations

from typing import Any

import pytest
from typer.main import get_command

from deploy.commands.events import app
from shared.events.event import FIELDS

NESTED = {"images", "videos", "news", "alternates"}
"""Members with parts of their own: they are sent with --file."""
PARAMETERS: dict[str, Any] = {
    each.name.removesuffix("_"): each
    for each in get_command(app).commands["send"].params  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("member", [name for name in FIELDS if name not in {*NESTED, "loc"}])
def test_a_member_without_parts_has_an_option_of_its_name(member: str) -> None:
    assert PARAMETERS[member].opts == [f"--{member.replace('_', '-')}"]
