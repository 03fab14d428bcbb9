"""Each file for one host, before the program that reads it: nginx, systemd, Docker, compose."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml

from tests.system.driver import SITEMAPD
from tests.system.nginx import PROGRAM, SHIPPED, Nginx, needs

DEPLOY = SHIPPED.parent
COMPOSE = ("compose.yaml", "compose.ha.yaml")
KINDS = ("services", "networks", "volumes", "secrets")
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


@pytest.mark.parametrize("name", ["compose.yaml", "compose.ha.yaml"])
def test_a_compose_file_follows_the_compose_specification(name: str) -> None:
    checker = Path(sys.executable).with_name("check-jsonschema")

    said(checker, "--builtin-schema", "vendor.compose-spec", DEPLOY / name)


def test_what_the_compose_files_name_is_there() -> None:
    """Together, as they are used: services, networks, volumes and secrets; no address twice."""
    plain, more = (yaml.safe_load((DEPLOY / name).read_text()) for name in COMPOSE)
    known = {kind: {**plain.get(kind, {}), **more.get(kind, {})} for kind in KINDS}
    addresses = []

    for name, service in [*plain["services"].items(), *more["services"].items()]:
        base = service.get("extends", {}).get("service", name)
        assert base in plain["services"] or name in plain["services"], name
        assert set(service.get("depends_on", ())) <= known["services"].keys()
        assert set(service.get("networks", ())) <= known["networks"].keys()
        for secret in service.get("secrets", ()):
            source = secret if isinstance(secret, str) else secret["source"]
            assert source in known["secrets"], (name, source)
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source.startswith(("./", "../")) or source in known["volumes"], (name, volume)
        if isinstance(service.get("networks"), dict):
            addresses += [each["ipv4_address"] for each in service["networks"].values() if each]
    assert len(addresses) == len(set(addresses)) == 8


@pytest.mark.parametrize("path", ["/", "/a.b/shop/"])
def test_an_existing_server_block_serves_every_file_and_leaves_the_rest_alone(
    tmp_path: Path, path: str
) -> None:
    """As `sitemapd config nginx` prints it, included beside a web site of its own."""
    needs(PROGRAM)
    (tmp_path / "sitemapd.toml").write_text(
        f'[sites.demo]\nbase_url = "http://127.0.0.1{path}"\nweb_root = "public"\n'
        'form = "encoded"\nfeed = true\ntokens = ["0123456789abcdef"]\n'
        '[sites.demo.notify.indexnow]\nkey = "0123456789abcdef"\n'
    )
    printed = said(SITEMAPD, "config", "nginx", "--home", tmp_path)
    theirs, ours = tmp_path / "theirs", tmp_path / "public"
    for root in (theirs, ours):
        root.mkdir()
    files = ("sitemap.xml", "atom.xml", "rss.xml", "sitemap.html", "sitemap.css")
    for name in (*files, "0123456789abcdef.txt", "blog-1.xml"):
        (ours / name).write_bytes(b"ours")
    (ours / "pages-1.xml.gz").write_bytes(gzip.compress(b"ours"))
    (theirs / "blog-1.xml").write_bytes(b"theirs")
    (theirs / "robots.txt").write_bytes(b"theirs")
    nginx = Nginx(tmp_path / "nginx", theirs, "unix:/run/none.sock")
    nginx.beside(printed)
    nginx.start()
    try:
        answers = {
            name: httpx.get(nginx.address + name, trust_env=False)
            for name in (
                *(f"{path}{name}" for name in (*files, "0123456789abcdef.txt", "pages-1.xml")),
                "/blog-1.xml", "/robots.txt",
            )
        }  # fmt: skip
    finally:
        nginx.stop()

    assert {name: reply.status_code for name, reply in answers.items()} == dict.fromkeys(
        answers, 200
    )
    assert {name for name, reply in answers.items() if reply.text == "theirs"} == {
        "/blog-1.xml", "/robots.txt",
    }  # fmt: skip
    policy = answers[f"{path}sitemap.html"].headers.get("content-security-policy")
    assert policy == "frame-ancestors 'none'"
