"""Wagtail as a Django project of its own, on SQLite, driven through its admin."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.system.cms.installing import installed, run
from tests.system.cms.programs import Program, free_port

PACKAGES = ("wagtail==8.0.1", "Django==5.2.19")
PROJECT = Path(__file__).with_name("wagtail_site")
CLIENT = "from webhook.sources.wagtail import CLIENT; print(CLIENT)"
_SET_UP = """
from django.contrib.auth.models import User
from wagtail.models import Locale, Site
Locale.objects.get_or_create(language_code="de")
Site.objects.update(hostname="127.0.0.1", port={port})
User.objects.create_superuser("editor", "editor@example.com", "editor")
"""


def _install(place: Path) -> None:
    run(sys.executable, "-m", "venv", place, cwd=place)
    python = place / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, *PACKAGES, cwd=place)
    # Some 250 migrations take longer than all of the tests: they are run once.
    (place / "sitemapd_client.py").touch()
    run(python, "-m", "django", "migrate", "--verbosity", "0", cwd=PROJECT, env=_env(place))


def _env(home: Path, url: str = "", hook: str = "", secret: str = "") -> dict[str, str]:
    return {
        "DJANGO_SETTINGS_MODULE": "settings", "SITE_HOME": str(home), "SITE_URL": url,
        "SITE_HOOK": json.dumps([hook, secret]), "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([str(PROJECT), str(home)]),
    }  # fmt: skip


class Wagtail:
    """One site; `home` holds its database, `url` is the address it is reached at."""

    def __init__(self, home: Path, url: str, hook: str, secret: str) -> None:
        self.home, self.url = home, url
        pins = [PACKAGES, (PROJECT / "newsroom" / "migrations" / "0001_initial.py").read_text()]
        place = installed("wagtail-8.0.1", pins, _install)
        self.python = place / "bin" / "python"
        home.mkdir()
        shutil.copy(place / "db.sqlite3", home)
        # The client is taken from where users take it.
        client = subprocess.run(
            [sys.executable, "-c", CLIENT], check=True, capture_output=True, text=True
        )
        (home / "sitemapd_client.py").write_text(client.stdout)
        self.env = _env(home, url, hook, secret)
        self.manage("shell", "--no-imports", "-c", _SET_UP.format(port=urlsplit(url).port))
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        command = [self.python, "-m", "django", "runserver", "--noreload", self.address]
        self.program = Program(command, home, self.env, home / "server.log")
        self.program.answers(f"http://{self.address}/api/v2/pages/")

    def close(self) -> None:
        """End it."""
        self.admin.close()
        self.program.end()

    def manage(self, *command: str) -> None:
        """Run a management command, as cron does."""
        done = subprocess.run(
            [self.python, "-m", "django", *command], cwd=self.home, capture_output=True, text=True,
            env={**os.environ, **self.env}, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def log_in(self) -> None:
        """Log in; the front must be there by now."""
        self.admin = httpx.Client(base_url=self.url, timeout=60)
        self.admin.get("/admin/login/")
        self._post("/admin/login/", username="editor", password="editor")

    def _post(self, path: str, **fields: object) -> str:
        """Send a form of the admin; where it leads to."""
        token = self.admin.cookies["csrftoken"]
        reply = self.admin.post(path, data=fields, headers={"x-csrftoken": token})
        errors = re.findall(r'class="error-message".*?</', reply.text, re.DOTALL)
        assert reply.status_code == 302, (path, reply.status_code, errors, self.program.tail())
        return reply.headers["location"]

    def public(self) -> set[str]:
        """Every page that the API shows to strangers."""
        found: set[str] = set()
        while True:
            query = {"fields": "html_url", "limit": 1_000, "offset": len(found)}
            reply = httpx.get(f"{self.url}/api/v2/pages/", params=query, timeout=60).json()
            found |= {item["meta"]["html_url"] for item in reply["items"]}
            if len(found) >= reply["meta"]["total_count"]:
                return found

    def create(self, parent: int, slug: str, *, publish: bool = False, **fields: str) -> int:
        """Add an article; its number."""
        action = {"action-publish": "1"} if publish else {}
        path = f"/admin/pages/add/newsroom/article/{parent}/"
        self._post(path, title=slug.capitalize(), slug=slug, **fields, **action)
        return int(self.one(slug)["id"])

    def one(self, slug: str) -> dict[str, Any]:
        """The newest page with this slug, as the admin knows it."""
        reply = self.admin.get("/admin/api/main/pages/", params={"slug": slug, "order": "-id"})
        return dict(reply.json()["items"][0])

    def translation(self, page: int, locale: str) -> int:
        """The number of a page in another language."""
        query = {"translation_of": page, "locale": locale}
        reply = self.admin.get("/admin/api/main/pages/", params=query)
        return int(reply.json()["items"][0]["id"])

    def edit(self, page: int, slug: str, *, publish: bool = True, **fields: str) -> None:
        """Save an article, or publish it."""
        action = {"action-publish": "1"} if publish else {}
        title = fields.pop("title", slug.capitalize())
        self._post(f"/admin/pages/{page}/edit/", title=title, slug=slug, **fields, **action)

    def move(self, page: int, parent: int) -> None:
        """Move a page with everything below it."""
        self._post(f"/admin/pages/{page}/move/{parent}/confirm/")

    def copy(self, page: int, parent: int, slug: str) -> None:
        """Copy a page and publish the copy."""
        self._post(
            f"/admin/pages/{page}/copy/", new_title=slug, new_slug=slug, new_parent_page=parent,
            copy_subpages="on", publish_copies="on",
        )  # fmt: skip

    def unpublish(self, page: int, *, with_children: bool = False) -> None:
        """Take a page off the site."""
        fields = {"include_descendants": "on"} if with_children else {}
        self._post(f"/admin/pages/{page}/unpublish/", **fields)

    def delete(self, page: int) -> None:
        """Delete a page with everything below it."""
        self._post(f"/admin/pages/{page}/delete/")

    def bulk(self, action: str, *pages: int, **fields: str) -> None:
        """Do `action` to several pages chosen in the explorer."""
        chosen = "&".join(f"id={page}" for page in pages)
        self._post(f"/admin/bulk/wagtailcore/page/{action}/?next=/admin/&{chosen}", **fields)

    def restrict(self, page: int) -> None:
        """Show a page to those only who are logged in."""
        path = f"/admin/pages/{page}/privacy/"
        token = self.admin.cookies["csrftoken"]
        fields = {"restriction_type": "login", "password": ""}
        reply = self.admin.post(path, data=fields, headers={"x-csrftoken": token})
        assert reply.status_code == 200, reply.text

    def translate(self, page: int, locale: int) -> None:
        """Submit a page for translation: a draft in the other language."""
        self._post(f"/admin/translation/submit/page/{page}/", locales=str(locale))
