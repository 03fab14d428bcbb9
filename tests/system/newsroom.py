"""An editor's WordPress and the sitemapd it tells, for the tests of the plugin."""

from __future__ import annotations

import re
import socket
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.system import wordpress
from tests.system.driver import NAMESPACE, System, wait_until
from tests.system.wordpress import WordPress

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
CONFIG = """\
[sites.demo]
base_url = "{base}"
web_root = "public"
secrets = ["{secret}"]
tokens = ["0123456789abcdef0123456789abcdef0123456789ab"]
publish_interval = 0.1
[sites.demo.sections.posts]
"""
SETTINGS = "options-general.php?page=sitemapd"


class Newsroom:
    """The editor's WordPress and the sitemapd it tells."""

    def __init__(self, home: Path) -> None:
        self.wp = WordPress(home)
        self.system = System(home / "home")

    def start(self, package: Path) -> None:
        """Everything on, the plugin installed and set up in its settings page."""
        self.wp.start()
        self.system.configure(CONFIG.format(base=self.wp.url, secret=SECRET))
        self.system.start()
        self.permalinks("/%year%/%monthnum%/%postname%/")
        self.wp.install(package)
        self.configure()

    def configure(self, **changed: Any) -> str:
        """Save the settings page; what it shows afterwards."""
        form = {
            "address": self.system.address, "site": "demo", "secret": SECRET, "terms": "1",
            "authors": "1", "core": "keep", **changed,
        }  # fmt: skip
        shown = self.wp.page(SETTINGS)
        hidden = wordpress.fields(shown, 'action="options.php"')
        named = {f"sitemapd[{name}]": value for name, value in form.items()}
        reply = self.wp.submit("options.php", **hidden, **named)
        return str(self.wp.web.get(reply.headers["location"]).text)

    def permalinks(self, structure: str) -> None:
        """Another structure of addresses, as its settings page stores it."""
        self.wp.run(
            f"$GLOBALS['wp_rewrite']->set_permalink_structure( '{structure}' );"
            "flush_rewrite_rules(); return 1;"
        )

    def post(self, title: str, kind: str = "posts", **members: Any) -> int:
        """Publish something; its id."""
        made = self.wp.rest("POST", kind, **{"title": title, "status": "publish", **members})
        return int(made["id"])

    def edit(self, ident: int, kind: str = "posts", **members: Any) -> None:
        self.wp.rest("POST", f"{kind}/{ident}", **members)

    def settled(
        self, *, but: frozenset[str] = frozenset(), cron: bool = False
    ) -> dict[str, str | None]:
        """Wait until the sitemap is what WordPress says, the pages of `but` apart; what it says.

        By what the requests so far have sent; with `cron`, by what wp-cron sends as well.
        """
        public = self.wp.public()
        expected = {loc: lastmod for loc, lastmod in public.items() if loc not in but}

        def right() -> bool:
            if cron:
                self.wp.cron()
            return self.published() == expected

        try:
            wait_until(right, "the sitemap is right")
        except pytest.fail.Exception:
            assert self.published() == expected, self.deliveries()[:3]
        return expected

    def published(self) -> dict[str, str | None]:
        """Address -> last modification, by way of the index, over HTTP."""
        return {loc: url.findtext(f"{NAMESPACE}lastmod") for loc, url in self.entries().items()}

    def entries(self) -> dict[str, ET.Element]:
        """Address -> its entry, by way of the index, over HTTP."""
        found: dict[str, ET.Element] = {}
        status, _, index = self.system.get("/sitemap.xml")
        for sitemap in ET.fromstring(index) if status == 200 else ():
            path = urlsplit(sitemap.findtext(f"{NAMESPACE}loc") or "").path
            status, _, shard = self.system.get(path)
            if status == 404:  # emptied since the index was read
                return self.entries()
            assert status == 200, path
            for url in ET.fromstring(shard):
                loc = url.findtext(f"{NAMESPACE}loc") or ""
                assert loc not in found, f"{loc} is listed twice"
                found[loc] = url
        return found

    def link(self, ident: int) -> str:
        return wordpress.upper_escapes(self.wp.run(f"return get_permalink( {ident} );"))

    def deliveries(self) -> list[dict[str, Any]]:
        """What the settings page lists, newest first."""
        return list(self.wp.run("return get_option( 'sitemapd_deliveries', array() );"))

    def ask(self, action: str, **fields: str) -> dict[str, Any]:
        """Press a button of the settings page."""
        found = re.search(r'sitemapdAdmin = .*"nonce":"(\w+)"', self.wp.page(SETTINGS))
        assert found
        reply = self.wp.submit("admin-ajax.php", action=action, nonce=found[1], **fields)
        return dict(reply.json())

    def send_everything(self) -> None:
        """Press the button, and go on as its script does."""
        said = self.ask("sitemapd_send_all", start="1")
        while said["success"] and said["data"]["more"]:
            said = self.ask("sitemapd_send_all")
        assert said["success"], said


@contextmanager
def answering(port: int, answer: bytes) -> Iterator[list[socket.socket]]:
    """Something else at sitemapd's address that says `answer`, or nothing; the calls it got."""
    calls: list[socket.socket] = []
    listening = socket.create_server(("127.0.0.1", port))

    def listen() -> None:
        while True:
            try:
                call = listening.accept()[0]
            except OSError:
                return
            calls.append(call)
            if answer:
                call.recv(65536)
                call.sendall(answer)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield calls
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        listener.join(10)
        for call in calls:
            call.close()
