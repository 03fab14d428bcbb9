"""A network of WordPress sites and the sitemapd they tell, each site with a sitemap of its own."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.system.driver import NAMESPACE, System, wait_until
from tests.system.newsroom import SECRET
from tests.system.wordpress import WordPress

SITE = """\
[sites.{name}]
base_url = "{base}"
web_root = "{root}"
secrets = ["{secret}"]
publish_interval = 0.1
[sites.{name}.sections.posts]
"""


class Network:
    """One installation with a main site, and sites that a test opens."""

    def __init__(self, home: Path, names: tuple[str, ...]) -> None:
        self.wp = WordPress(home)
        self.system = System(home / "home")
        self.names = names

    def start(self, package: Path) -> None:
        """Start everything, with the plugin active on the whole network."""
        self.wp.start()
        self.wp.become_network()
        roots = {"demo": "public", **{name: f"public-{name}" for name in self.names}}
        config = "".join(
            SITE.format(name=name, base=self.wp.url, root=root, secret=SECRET)
            for name, root in roots.items()
        )
        self.system.configure(config)
        self.system.start()
        self.wp.install(package)
        self.wp.run("return activate_plugin( 'sitemapd/sitemapd.php', '', true );")

    def open(self, name: str) -> int:
        """Open a site at /NAME/ that sitemapd knows as NAME, with all its pages listed; its id."""
        ident = int(
            self.wp.run(
                f"return wpmu_create_blog( '{self.wp.host}', '/{name}/', 'A site', 1,"
                " array( 'public' => 1 ) );"
            )
        )
        self.wp.run(
            f"return update_option( 'sitemapd', array( 'address' => '{self.system.address}',"
            f" 'site' => '{name}', 'secret' => '{SECRET}' ) );",
            f"/{name}",
        )
        self.settled(name)
        return ident

    def settled(self, name: str, path: str = "") -> None:
        """Wait until the sitemap is what the site says is public, at `path` if it moved."""
        public = set(self.wp.public(path or f"/{name}"))
        assert len(public) > 2
        self.lists(name, public)

    def lists(self, name: str, expected: set[str]) -> None:
        """Wait until exactly these pages are listed."""
        try:
            wait_until(lambda: self.published(name) == expected, "the sitemap is right")
        except pytest.fail.Exception:
            assert self.published(name) == expected

    def published(self, name: str) -> set[str] | None:
        """The addresses of the sitemap's files; None while one of them is being replaced."""
        root = self.system.home / f"public-{name}"
        found: set[str] = set()
        try:
            if not (root / "sitemap.xml").exists():
                return found
            for sitemap in ET.parse(root / "sitemap.xml").getroot():
                shard = Path(urlsplit(sitemap.findtext(f"{NAMESPACE}loc") or "").path).name
                for url in ET.parse(root / shard).getroot():
                    found.add(url.findtext(f"{NAMESPACE}loc") or "")
        except FileNotFoundError:
            return None
        return found

    def status(self, ident: int, name: str, value: int) -> None:
        """Set archived, spam or deleted, as the list of sites of the network's admin does."""
        self.wp.run(f"return update_blog_status( {ident}, '{name}', '{value}' );")

    def main_cron(self) -> None:
        """Run wp-cron of the main site, logged out: a super admin may visit closed sites too."""
        assert self.wp.visit("/wp-cron.php").status_code == 200

    def lose_schedule(self) -> None:
        """What two requests do that write the main site's schedule at the same time."""
        self.wp.run("return wp_clear_scheduled_hook( 'sitemapd_flush' );")

    def empties(self, name: str) -> None:
        """Wait until the main site's cron has taken every page out, and nothing is left over.

        WordPress leaves its cron alone for 60 seconds after a request for it that went astray.
        """

        def emptied() -> bool:
            self.main_cron()
            return self.published(name) == set() and self.kept() == []

        wait_until(emptied, "its pages leave, and nothing is kept", 100)

    def kept(self) -> list[str]:
        """What the plugin keeps in options of the network."""
        return list(
            self.wp.run(
                'global $wpdb; return $wpdb->get_col( "SELECT meta_value FROM $wpdb->sitemeta'
                " WHERE meta_key LIKE 'sitemapd%'\" );"
            )
        )

    def tables(self) -> set[str]:
        return set(
            self.wp.run("global $wpdb; return $wpdb->get_col( \"SHOW TABLES LIKE '%sitemapd%'\" );")
        )
