"""Each file for one host, before the program that reads it: nginx, systemd, Docker, compose."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.driver import SITEMAPD
from tests.system.nginx import PROGRAM, SHIPPED, Nginx, needs

DEPLOY = SHIPPED.parent
UNITS = sorted((DEPLOY / "systemd").iterdir())
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]


def said(*command: str | Path) -> str:
    """What a checker has to say; fails with it if it finds a fault."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_nginx_takes_the_shipped_configuration_without_a_warning(tmp_path: Path) -> None:
    needs(PROGRAM)
    nginx = Nginx(tmp_path, tmp_path, "unix:/run/sitemapd/web.sock")
    nginx.port = 8080
    nginx.write()

    checked = nginx.check()

    assert checked.returncode == 0, checked.stderr
    assert "[warn]" not in checked.stderr
    assert "# <-" not in (tmp_path / "sitemapd.conf").read_text().partition("upstream")[2]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units as on a host where `sitemapd` is installed: systemd looks for the program."""
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8")
        (tmp_path / unit.name).write_text(text.replace("/opt/sitemapd/bin/sitemapd", str(SITEMAPD)))
    return tmp_path


def test_systemd_takes_every_unit_without_a_word(installed: Path) -> None:
    needs("systemd-analyze")

    units = [installed / unit.name for unit in UNITS]
    assert said("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units) == ""


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.stem)
def test_systemd_finds_little_that_a_unit_leaves_open(installed: Path, unit: Path) -> None:
    """In tenths, 100 is the worst; what is left is a network namespace, a root of its own."""
    needs("systemd-analyze")

    most = "15" if unit.stem == "sitemapd-worker" else "12"
    said(
        "systemd-analyze", "security", "--no-pager", "--offline=true", f"--threshold={most}",
        installed / unit.name,
    )  # fmt: skip


def test_the_dockerfile_passes_its_linter() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")

    assert said(hadolint, "--failure-threshold", "style", DEPLOY / "Dockerfile") == ""


def test_the_compose_file_follows_the_compose_specification() -> None:
    checker = Path(sys.executable).with_name("check-jsonschema")

    said(checker, "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")
