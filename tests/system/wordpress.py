"""Debian's WordPress as it is run: MariaDB, PHP, the plugin from its zip, all on loopback."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.system.driver import wait_until

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "deploy" / "wordpress" / "build.py"
CORE = Path(os.environ.get("SITEMAPD_WORDPRESS", "/usr/share/wordpress"))
MARIADB = shutil.which("mariadbd") or "/usr/sbin/mariadbd"
NEEDED = (CORE / "wp-load.php", Path(MARIADB), Path("/usr/bin/php"))
WORKERS = 4
"""A request of wp-cron comes while the one that started it still runs."""

_FAST = ("-d", "opcache.enable_cli=1", "-d", "opcache.revalidate_freq=0")

_CONFIG = """\
<?php
define( 'DB_NAME', 'wordpress' );
define( 'DB_USER', 'root' );
define( 'DB_PASSWORD', '' );
define( 'DB_HOST', 'localhost:{socket}' );
define( 'DB_CHARSET', 'utf8mb4' );
define( 'DB_COLLATE', '' );
define( 'WP_ENVIRONMENT_TYPE', 'local' ); // application passwords without TLS
define( 'FS_METHOD', 'direct' );
define( 'AUTOMATIC_UPDATER_DISABLED', true );
define( 'WP_HTTP_BLOCK_EXTERNAL', true );
define( 'WP_ACCESSIBLE_HOSTS', '127.0.0.1' );
define( 'WP_DEBUG', true );
define( 'WP_DEBUG_LOG', '{log}' );
define( 'WP_DEBUG_DISPLAY', false );
{salts}
$table_prefix = 'wp_';
if ( ! defined( 'ABSPATH' ) ) {{
	define( 'ABSPATH', __DIR__ . '/' );
}}
require_once ABSPATH . 'wp-settings.php';
"""
_SALTS = [
    f"{k}_{w}" for k in ("AUTH", "SECURE_AUTH", "LOGGED_IN", "NONCE") for w in ("KEY", "SALT")
]


def needed() -> None:
    """Skip where the packages are not; never where everything is to run (CI_ALL)."""
    missing = [str(path) for path in NEEDED if not path.exists()]
    if missing and not os.environ.get("CI_ALL"):
        pytest.skip(f"{', '.join(missing)} missing: .ci/run says which packages to install")


def packed(target: Path) -> Path:
    """The plugin's zip."""
    subprocess.run([sys.executable, BUILD, target], check=True, timeout=60)
    return target


class WordPress:
    """One installation in `home`. Requests go through HTTP as an editor's do; `run` is the rest."""

    def __init__(self, home: Path) -> None:
        self.home, self.root = home, home / "www"
        self.errors = home / "debug.log"
        self.password = secrets.token_hex(8)
        self.children: list[subprocess.Popen[bytes]] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.host = f"127.0.0.1:{probe.getsockname()[1]}"
        self.url = f"http://{self.host}"

    def start(self) -> None:
        """Install everything and answer requests."""
        self._database()
        self._files()
        self._create()
        self._serve()
        self.web = httpx.Client(base_url=self.url, timeout=60, trust_env=False)
        self._log_in()

    def stop(self) -> None:
        """End what was started."""
        for child in reversed(self.children):
            os.killpg(child.pid, signal.SIGTERM)
            child.wait(30)

    def faults(self) -> list[str]:
        """What PHP complains of the plugin.

        Two requests of wp-cron may unschedule the same event: WordPress logs that and goes on.
        """
        lines = self.errors.read_text().splitlines()
        return [line for line in lines if "sitemapd" in line and "] Cron " not in line]

    def install(self, package: Path) -> None:
        """Install and activate a plugin from its zip, with WordPress's own installer."""
        done = self.run(
            "require_once ABSPATH . 'wp-admin/includes/class-wp-upgrader.php';"
            "$up = new Plugin_Upgrader( new Automatic_Upgrader_Skin() );"
            f"$done = $up->install( '{package}' );"
            "return array( true === $done, activate_plugin( $up->plugin_info() ) );"
        )
        assert done == [True, None]

    def run(self, php: str, site: str = "") -> Any:
        """What `php` returns, run in WordPress as one request, its end included.

        In a network, `site` is the path of the site that gets the request, as in "/two".
        """
        reply = self.web.post(f"{site}/run.php", content=php.encode())
        assert reply.status_code == 200, reply.text
        return json.loads(reply.text.splitlines()[-1])

    def rest(self, method: str, path: str, **body: Any) -> Any:
        """A request of the block editor."""
        reply = self.web.request(
            method, f"/wp-json/wp/v2/{path}", json=body, headers={"x-wp-nonce": self.nonce}
        )
        assert reply.is_success, reply.text
        return reply.json()

    def page(self, path: str) -> str:
        """A page of the administration."""
        reply = self.web.get(f"/wp-admin/{path}")
        assert reply.status_code == 200, reply.text
        return reply.text

    def visit(self, path: str) -> httpx.Response:
        """What a reader is shown."""
        return httpx.get(f"{self.url}{path}", timeout=30, trust_env=False)

    def submit(self, path: str, **fields: Any) -> httpx.Response:
        """Post a form."""
        reply = self.web.post(f"/wp-admin/{path}", data=fields)
        assert reply.status_code in {200, 302}, reply.text
        return reply

    def cron(self) -> None:
        """What the system's cron does."""
        assert self.web.get("/wp-cron.php").status_code == 200

    def public(self, site: str = "") -> dict[str, str | None]:
        """Address -> last modification of what WordPress says is public."""
        truth = self.run((HERE / "wordpress_truth.php").read_text(), site)
        return {upper_escapes(loc): lastmod for loc, lastmod in dict(truth).items()}

    def become_network(self) -> None:
        """Turn the installation into a network of sites in directories."""
        self.run(
            "define( 'WP_INSTALLING_NETWORK', true ); global $wpdb;"
            "require_once ABSPATH . 'wp-admin/includes/upgrade.php';"
            "foreach ( $wpdb->tables( 'ms_global' ) as $name => $table ) { $wpdb->$name = $table; }"
            "install_network(); return true === populate_network("
            f" 1, '{self.host}', 'editor@example.org', 'Network', '/', false );"
        )
        shutil.copy(HERE / "wordpress_network.php", self.root / "wp-content" / "mu-plugins")
        config = self.root / "wp-config.php"
        constants = (
            "define( 'MULTISITE', true ); define( 'SUBDOMAIN_INSTALL', false );"
            f"define( 'DOMAIN_CURRENT_SITE', '{self.host}' ); define( 'PATH_CURRENT_SITE', '/' );"
            "define( 'SITE_ID_CURRENT_SITE', 1 ); define( 'BLOG_ID_CURRENT_SITE', 1 );"
        )
        head, tail = config.read_text().split("require_once", 1)
        config.write_text(f"{head}{constants}\nrequire_once{tail}")
        self.web.cookies.clear()
        self._log_in()

    def _database(self) -> None:
        data, self.socket = self.home / "db", self.home / "db.sock"
        user = ["--user=root"] if os.geteuid() == 0 else []
        with (self.home / "db.log").open("wb") as log:
            subprocess.run(
                [
                    "mariadb-install-db", "--no-defaults", f"--datadir={data}", *user,
                    "--auth-root-authentication-method=normal", "--skip-test-db",
                ],
                stdout=log, stderr=log, check=True, timeout=100,
            )  # fmt: skip
            command = [
                MARIADB, "--no-defaults", f"--datadir={data}", f"--socket={self.socket}", *user,
                f"--pid-file={self.home / 'db.pid'}", "--skip-networking", "--skip-grant-tables",
                "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M",
            ]  # fmt: skip
            self._child(command, log)
        ask = (
            f"$db = @new mysqli( null, 'root', '', '', 0, '{self.socket}' );"
            "$db->query( 'CREATE DATABASE IF NOT EXISTS wordpress' );"
        )
        wait_until(
            lambda: (
                subprocess.run(["php", "-r", ask], capture_output=True, check=False).returncode == 0
            ),
            "MariaDB answers",
            60,
        )

    def _files(self) -> None:
        shutil.copytree(CORE, self.root, ignore_dangling_symlinks=True)
        salts = "\n".join(f"define( '{name}', '{secrets.token_hex(16)}' );" for name in _SALTS)
        config = _CONFIG.format(socket=self.socket, salts=salts, log=self.errors)
        (self.root / "wp-config.php").write_text(config)
        extra = self.root / "wp-content" / "mu-plugins"
        extra.mkdir(exist_ok=True)
        shutil.copy(HERE / "wordpress_site.php", extra)
        shutil.copy(HERE / "wordpress_run.php", self.root / "run.php")

    def _create(self) -> None:
        create = (
            "require_once ABSPATH . 'wp-admin/includes/upgrade.php'; return wp_install("
            f" 'Test', 'editor', 'editor@example.org', true, '', '{self.password}' );"
        )
        where = {"WORDPRESS_HOST": self.host, "WORDPRESS_ROOT": str(self.root)}
        subprocess.run(
            ["php", HERE / "wordpress_run.php"], input=create.encode(), capture_output=True,
            timeout=60, check=True, env={**os.environ, **where},
        )  # fmt: skip

    def _serve(self) -> None:
        with (self.home / "php.log").open("wb") as log:
            self._child(
                ["php", *_FAST, "-S", self.host, "-t", self.root, HERE / "wordpress_router.php"],
                log,
                PHP_CLI_SERVER_WORKERS=str(WORKERS),
            )

        def answers() -> bool:
            try:
                return httpx.get(f"{self.url}/wp-login.php", trust_env=False).status_code == 200
            except httpx.TransportError:
                return False

        wait_until(answers, "WordPress answers")

    def _child(self, command: list[Any], log: Any, **environment: str) -> None:
        # A group of its own: php -S has workers, which end with it.
        self.children.append(
            subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, **environment},
            )
        )  # fmt: skip

    def _log_in(self) -> None:
        self.web.cookies.set("wordpress_test_cookie", "WP Cookie check")
        reply = self.web.post(
            "/wp-login.php", data={"log": "editor", "pwd": self.password, "testcookie": "1"}
        )
        assert reply.status_code == 302, reply.text
        self.nonce = self.web.get("/wp-admin/admin-ajax.php?action=rest-nonce").text


def fields(html: str, form: str) -> dict[str, str]:
    """The hidden fields of the form whose tag holds `form`."""
    body = html.split(form, 1)[1].split("</form>", 1)[0]
    tags = re.findall(r"<input[^>]*type=[\"']hidden[\"'][^>]*>", body)
    pairs = (
        (re.search(r"name=[\"'](.*?)[\"']", t), re.search(r"value=[\"'](.*?)[\"']", t))
        for t in tags
    )
    return {unescape(n[1]): unescape(v[1]) for n, v in pairs if n and v}


def upper_escapes(url: str) -> str:
    """`url` with its escapes as sitemapd writes them; WordPress writes them in lower case."""
    return re.sub(r"%[0-9a-f]{2}", lambda match: match[0].upper(), url)
