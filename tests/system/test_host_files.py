"""`sitemapd deploy-files`: what it writes for several sites, before the programs that read it."""

from __future__ import annotations

import hashlib
import io
import subprocess
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.system.driver import SITEMAPD
from tests.system.nginx import PROGRAM, SHIPPED, Nginx, needs
from tests.system.test_deploy_files import said

DEPLOY = SHIPPED.parent
PASSWORD = "canary-of-the-password"
TOKEN = "canary-of-the-token"
SITES = {
    "main": "http://www.example.com", "shop": "http://www.example.com/shop/",
    "deep": "http://deep.example.org/a/", "own": "http://own.example.org",
}  # fmt: skip


def configured(home: Path, sites: dict[str, str] = SITES, more: str = "") -> Path:
    home.mkdir(exist_ok=True)
    text = (
        f'redis_url = "unix://sitemapd:{PASSWORD}@/run/redis-sitemapd/redis.sock"\n{more}'
        + "".join(
            f'[sites.{name}]\nbase_url = "{url}"\nweb_root = "{home}/roots of/{name}"\n'
            f'form = "encoded"\ntokens = ["{TOKEN}"]\n'
            for name, url in sites.items()
        )
    )
    (home / "sitemapd.toml").write_text(text)
    return home


def written(home: Path, *options: str) -> Path:
    said(SITEMAPD, "deploy-files", home / "out", "--home", home, *options)
    return home / "out"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration whose files are written, to the directory `out` in it."""
    home = configured(tmp_path_factory.mktemp("some") / "a home")
    written(home, "--json")
    return home


def test_every_host_serves_the_files_of_its_own_sites(home: Path, tmp_path: Path) -> None:
    needs(PROGRAM)
    for name in SITES:
        root = home / "roots of" / name
        root.mkdir(parents=True)
        for file in ("sitemap.xml", "sitemap.html", ".sitemapd"):
            (root / file).write_text(name)
    nginx = Nginx(tmp_path / "nginx", home, "unix:/run/none.sock")
    nginx.whole(home / "out")
    nginx.start()

    def ask(host: str, path: str) -> str:
        answer = httpx.get(nginx.address + path, headers={"Host": host}, trust_env=False)
        return answer.text if answer.status_code == httpx.codes.OK else str(answer.status_code)

    try:
        for page in ("sitemap.xml", "sitemap.html"):
            assert ask("www.example.com", f"/{page}") == "main"
            assert ask("www.example.com", f"/shop/{page}") == "shop"
            assert ask("deep.example.org", f"/a/{page}") == "deep"
            assert ask("deep.example.org", f"/{page}") == "404"
            assert ask("own.example.org", f"/{page}") == "own"
        assert ask("www.example.com", "/.sitemapd") == "404"
        assert ask("www.example.com", "/shop/.sitemapd") == "404"
        assert "not known to be accepted" in httpx.post(
            f"{nginx.address}/v1/sites/own/events", headers={"Host": "own.example.org"},
            trust_env=False,
        ).text  # fmt: skip
        with pytest.raises(httpx.RemoteProtocolError):
            ask("unknown.example.net", "/sitemap.xml")
    finally:
        nginx.stop()


def test_with_certificates_every_host_takes_https_and_leads_there(tmp_path: Path) -> None:
    needs(PROGRAM)
    sites = {name: url.replace("http:", "https:") for name, url in SITES.items()}
    home = configured(tmp_path / "home", sites, 'public_url = "https://hooks.example.com"\n')
    out = written(home, "--tls")
    config = out / "nginx/sites-available/sitemapd"
    hosts = ("www.example.com", "deep.example.org", "own.example.org", "hooks.example.com")
    text = config.read_text()
    for host in hosts:
        folder = tmp_path / "live" / host
        folder.mkdir(parents=True)
        said(
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={host}",
            "-keyout", folder / "privkey.pem", "-out", folder / "fullchain.pem",
        )  # fmt: skip
        assert f"/etc/letsencrypt/live/{host}/fullchain.pem" in text
        assert f"return 301 https://{host}$request_uri;" in text
    config.write_text(text.replace("/etc/letsencrypt/live", str(tmp_path / "live")))
    nginx = Nginx(tmp_path / "nginx", home, "unix:/run/none.sock")
    nginx.whole(out)
    nginx.port = 8080
    nginx.write()

    # The test has one port for both kinds of server; on a host they are 80 and 443.
    shown = (nginx.directory / "sitemapd.conf").read_text()
    (nginx.directory / "sitemapd.conf").write_text(shown.replace("8080 ssl", "8443 ssl"))
    checked = nginx.check()

    assert checked.returncode == 0, checked.stderr
    assert "[warn]" not in checked.stderr


def test_an_existing_host_gets_locations_only_and_several_sites_fit_into_one_server(
    tmp_path: Path,
) -> None:
    needs(PROGRAM)
    home = configured(tmp_path / "home")
    out = written(home, "--existing", "www.example.com", "--existing", "own.example.org")
    made = (out / "nginx/sites-available/sitemapd").read_text()
    nginx = Nginx(tmp_path / "nginx", home, "unix:/run/none.sock")
    nginx.directory.mkdir()
    nginx.port = 8080
    snippets = [out / f"nginx/snippets/sitemapd-site-{name}.conf" for name in ("main", "shop")]
    nginx.beside("\n".join(snippet.read_text() for snippet in snippets))
    nginx.write()

    assert "server_name deep.example.org;" in made
    assert "server_name www.example.com;" not in made
    assert "default_server" not in made
    checked = nginx.check()
    assert checked.returncode == 0, checked.stderr


def test_systemd_takes_the_units_of_this_host(home: Path) -> None:
    needs("systemd-analyze")
    units = sorted((home / "out/systemd/system").iterdir())

    assert {unit.name for unit in units} == {path.name for path in (DEPLOY / "systemd").iterdir()}
    assert said("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units) == ""
    worker = next(unit for unit in units if "worker" in unit.name).read_text()
    assert f'Environment="SITEMAPD_HOME={home}"' in worker
    assert f"ExecStart={SITEMAPD} run worker" in worker
    assert f'ReadWritePaths="{home}/roots of/main"' in worker


def test_a_redis_elsewhere_is_no_unit_of_this_host(tmp_path: Path) -> None:
    home = configured(tmp_path / "home")
    config = home / "sitemapd.toml"
    config.write_text(
        'redis_url = "redis://sitemapd:x@db.example.com:6379"\n'
        + config.read_text().split("\n", 1)[1]
    )
    for unit in (written(home) / "systemd/system").glob("*.service"):
        text = unit.read_text()
        assert "redis-server@" not in text
        assert "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6" in text


def test_the_rest_is_there_and_no_secret_is(home: Path) -> None:
    out = home / "out"

    users = out / "redis/sitemapd.acl"
    assert f"#{hashlib.sha256(PASSWORD.encode()).hexdigest()} " in users.read_text()
    assert users.stat().st_mode & 0o777 == 0o640
    for name in ("prometheus/prometheus.yml", "prometheus/sitemapd.rules.yml",
                 "grafana/sitemapd.json"):  # fmt: skip
        assert (out / name).read_bytes() == (DEPLOY / name).read_bytes()
    manifests = [path for path in (DEPLOY / "kubernetes").rglob("*") if path.is_file()]
    assert len(manifests) > 10
    for path in manifests:
        assert (out / path.relative_to(DEPLOY)).read_bytes() == path.read_bytes()
    with zipfile.ZipFile(io.BytesIO((out / "wordpress/sitemapd.zip").read_bytes())) as plugin:
        assert "sitemapd/sitemapd.php" in plugin.namelist()
    everything = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in everything
    assert TOKEN.encode() not in everything


def test_users_of_roles_have_passwords_of_their_own_that_a_second_time_keeps(
    tmp_path: Path,
) -> None:
    home = configured(tmp_path / "home")
    out = written(home, "--roles")
    lines = (out / "redis/sitemapd.acl").read_text().splitlines()
    passwords = set()
    for role in ("web", "worker"):
        file = out / f"sitemapd/{role}.env"
        name, _, address = file.read_text().strip().partition("=")
        password = urlsplit(address).password or ""
        passwords.add(password)
        user = f"sitemapd-{role}"
        assert (name, file.stat().st_mode & 0o777) == ("SITEMAPD_REDIS_URL", 0o600)
        assert address == f"unix://{user}:{password}@/run/redis-sitemapd/redis.sock"
        digest = hashlib.sha256(password.encode()).hexdigest()
        assert [line for line in lines if line.startswith(f"user {user} on #{digest} ")]
        unit = (out / f"systemd/system/sitemapd-{role}.service").read_text()
        assert f"EnvironmentFile=-/etc/sitemapd/{role}.env\n" in unit
    assert len(passwords - {PASSWORD}) == 2
    assert all(len(password) == 64 for password in passwords)
    assert len(lines) == 4

    written(home, "--roles")  # nothing differs
    shared = "redis://sitemapd-web:of%20mine@10.0.0.1/3"
    (out / "sitemapd/web.env").write_text(f"SITEMAPD_REDIS_URL={shared}\n")
    shown = said(SITEMAPD, "deploy-files", out, "--home", home, "--roles", "--force")
    assert "sitemapd-web:of%20mine@/run/" in (out / "sitemapd/web.env").read_text()
    digest = hashlib.sha256(b"of mine").hexdigest()
    assert f"#{digest} " in (out / "redis/sitemapd.acl").read_text()
    assert f"install -D -m 0600 -t /etc/sitemapd {out}/sitemapd/*.env" in shown


def test_files_that_differ_are_replaced_on_request_only(home: Path) -> None:
    out = written(home)  # a second time, which is no change
    mine = out / "systemd/system/sitemapd-web.service"
    mine.write_text("mine\n")

    refused = subprocess.run(
        [SITEMAPD, "deploy-files", out, "--home", home],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (refused.returncode, mine.read_text()) == (1, "mine\n")
    assert str(mine) in refused.stderr
    assert refused.stderr.count("--force") == 2
    written(home, "--force")
    assert mine.read_text() != "mine\n"
