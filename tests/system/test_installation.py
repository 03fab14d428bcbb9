"""The wheel in environments of its own, beside packages of others that are called like ours."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.driver import System, wait_until

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).resolve().parents[2]
OURS = ("shared", "webhook", "worker", "deploy")
LAUNCHER = "deploy/launcher/sitemapd/"
NOT_INSTALLED = (".md", ".png")
STRANGER = "{'a stranger'}\n"
CLEAN = {"PYTHONPATH": "", "SITEMAPD_HOME": ""}


def clean(variables: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if name not in CLEAN} | variables


def done(*command: str | Path, cwd: Path | None = None, **variables: str) -> str:
    said = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=cwd,
        env=clean(variables),
    )  # fmt: skip
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    done(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place, cwd=ROOT)
    return next(place.iterdir())


def stranger(name: str, place: Path) -> Path:
    """A wheel with a package `name` at the top of site-packages."""
    found = place / f"{name}-9.0-py3-none-any.whl"
    info = f"{name}-9.0.dist-info"
    files = {
        f"{name}/__init__.py": 'OWNER = "a stranger"\n',
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(found, "w") as packed:
        for path, text in (files | {f"{info}/RECORD": record}).items():
            packed.writestr(path, text)
    return found


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("strangers")
    return [stranger(name, place) for name in OURS]


class Environment:
    """A virtual environment that has the dependencies of this one, and nothing of ours."""

    def __init__(self, place: Path) -> None:
        done(sys.executable, "-m", "venv", "--without-pip", place)
        self.python = place / "bin/python"
        self.program = place / "bin/sitemapd"
        (self.packages,) = place.glob("lib/python*/site-packages")
        # Only the directory: what its own .pth files name is no part of it.
        (self.packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))

    def pip(self, *arguments: str | Path) -> None:
        done(sys.executable, "-m", "pip", "--python", self.python, *arguments)

    def install(self, *wheels: Path) -> None:
        options = ("--no-index", "--no-deps", "--ignore-installed", "--no-compile")
        self.pip("install", *options, *wheels)


def test_the_wheel_holds_every_file_of_the_checkout_and_one_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        inside = {name for name in packed.namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *OURS],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    expected = {
        name.removeprefix("deploy/launcher/")
        if name.startswith(LAUNCHER)
        else f"sitemapd/_application/{name}"
        for name in tracked
        if not name.endswith(NOT_INSTALLED) and (ROOT / name).exists()
    }

    assert inside == expected
    assert {name.split("/")[0] for name in inside} == {"sitemapd"}


@pytest.fixture(scope="module")
def environment(
    tmp_path_factory: pytest.TempPathFactory, wheel: Path, strangers: list[Path]
) -> Environment:
    """An environment where packages of others were installed before the wheel, and after it."""
    made = Environment(tmp_path_factory.mktemp("environment") / "venv")
    made.install(*strangers)
    made.install(wheel)
    assert owners(made) == STRANGER
    made.install(*strangers)
    return made


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory, environment: Environment) -> Iterator[System]:
    """The installed program, started where folders are called like our packages, too."""
    place = tmp_path_factory.mktemp("elsewhere")
    for name in OURS:
        (place / name).mkdir()
        (place / name / "__init__.py").write_text("raise SystemExit('of the working directory')\n")
    system = System(place / "home", CLEAN, environment.program)
    with contextlib.chdir(place):
        system.start()
        yield system
        system.end()


def owners(environment: Environment) -> str:
    names = ", ".join(OURS)
    owner = "{each.OWNER for each in (" + names + ")}"
    return done(environment.python, "-P", "-c", f"import {names}, sitemapd; print({owner})")


def test_the_installed_package_is_started_in_every_way(
    environment: Environment, system: System, tmp_path: Path
) -> None:
    python = environment.python

    version = done(environment.program, "--version")
    assert done(python, "-m", "sitemapd", "--version") == version
    assert done(python, "-I", "-m", "sitemapd", "--version") == version
    variables = {
        "SITEMAPD_CONFIG": str(system.home / "sitemapd.toml"),
        "SITEMAPD_REDIS_URL": f"unix://{system.home}/redis/redis.sock",
    }
    wsgi = "from sitemapd.wsgi import app; print(type(app()).__name__)"
    assert done(python, "-c", wsgi, **variables) == "LiveApp\n"
    said = tmp_path / "celery.log"
    with said.open("wb") as output:
        celery = subprocess.Popen(
            [python, "-m", "celery", "-A", "sitemapd.celery_app", "worker", "-Q", "sitemapd",
             "-n", "second@%h", "--loglevel", "INFO"],
            stdout=output, stderr=output, env=clean(variables),
        )  # fmt: skip
    try:
        wait_until(lambda: " ready." in said.read_text(), "Celery's worker listens")
        alive = (environment.program, "run", "alive", "--name", "second", "--home", system.home)
        done(*alive, **variables)
    finally:
        celery.send_signal(signal.SIGTERM)
        assert celery.wait(60) == 0


def test_packages_of_the_same_names_neither_break_sitemapd_nor_are_broken(
    environment: Environment, system: System
) -> None:
    """The last test of this module: it ends the system and removes the package."""
    system.send({"type": "upsert", "loc": f"{system.base}/page"})
    wait_until(lambda: f"{system.base}/page" in system.published(), "the page is published")

    assert system.run("verify").returncode == 0
    assert owners(environment) == STRANGER
    assert system.stop() == 0
    environment.pip("uninstall", "--yes", "sitemapd")
    left = {path.name for path in environment.packages.iterdir()}
    assert "sitemapd" not in left
    assert left >= {*OURS}
