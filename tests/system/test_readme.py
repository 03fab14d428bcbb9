"""The README is run as it stands: its first five minutes, its two commands."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.system.driver import wait_until

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BUSY = "127.0.0.1:8080"


def section(title: str) -> str:
    return README.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def commands(title: str) -> list[str]:
    """The shell blocks of one section."""
    return re.findall(r"```sh\n(.*?)```", section(title), re.DOTALL)


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.mark.timeout(300)
def test_the_first_five_minutes_run_as_they_stand(tmp_path: Path) -> None:
    """Only the address and the directory are others: those of the README may be in use."""
    home, address, log = tmp_path / "demo", free_address(), tmp_path / "up.log"
    environment = {**os.environ, "HTTP": address, "DEMO": str(home), "SITEMAPD_HOME": str(home)}
    script = commands("First five minutes")[0].replace(BUSY, address).replace("demo/", f"{home}/")
    with log.open("wb") as output:
        up = subprocess.Popen(
            ["make", "up"], cwd=ROOT, env=environment, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    try:
        wait_until(lambda: b"\nready " in log.read_bytes(), "make up prints ready", 120)
        done = subprocess.run(
            ["sh", "-ex", "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
    finally:
        os.killpg(up.pid, signal.SIGTERM)
        up.wait(60)

    assert done.returncode == 0, done.stdout + done.stderr
    told = r"(?m)^(accepted|decided|published) +(.*?)  [\d.]+ ms$"
    steps = re.findall(told, done.stdout)
    loc = f"http://{address}/hello-world"
    assert [step for step in steps if step[0] != "accepted"] == [
        ("decided", f"{loc}: added"),
        ("published", "posts-1.xml, sitemap.xml"),
        ("decided", f"{loc}: same content"),
        ("decided", f"{loc}: deleted"),
        ("published", "sitemap.xml, posts-1.xml (removed)"),
    ]
    assert f"Sitemap: http://{address}/sitemap.xml" in done.stdout
    assert "equal: 3 files" in done.stdout


def test_nothing_else_is_at_the_top_level() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    top = {name.split("/")[0] for name in listed}

    assert top - {name for name in top if name.startswith(".")} == {
        "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "deploy",
        "SECURITY.md", "pyproject.toml", "requirements.txt", "shared", "tests", "webhook", "worker",
    }  # fmt: skip
