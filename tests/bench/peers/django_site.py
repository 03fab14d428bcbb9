"""Django's sitemap framework: its own views, asked for the index and for every file in it.

The pages are a list in memory, so no database is in the figure. Its lines are shorter than ours:
Django lists the date of a lastmod without the time.
"""

from __future__ import annotations

import re
import sys
from datetime import datetime
from io import BytesIO
from typing import Any

import django
from django.conf import settings
from django.contrib.sitemaps import Sitemap, views
from django.core.handlers.wsgi import WSGIHandler
from django.urls import path
from isal import igzip

from tests.bench.corpus import BASE
from tests.bench.peers.cost import PER_FILE, Files, Page

HOST = BASE.removeprefix("https://")
VERSION = django.get_version()
_LISTED = re.compile(rb"<loc>([^<]*)</loc>")


class PagesSitemap(Sitemap):
    """All pages, as a project declares them."""

    protocol, limit = "https", PER_FILE
    pages: list[tuple[str, datetime]] = []

    def items(self) -> list[tuple[str, datetime]]:
        """The pages: path and last change."""
        return self.pages

    def location(self, item: tuple[str, datetime]) -> str:
        """The path of a page."""
        return item[0]

    def lastmod(self, item: tuple[str, datetime]) -> datetime:
        """The last change of a page."""
        return item[1]


_SITEMAPS = {"sitemaps": {"pages": PagesSitemap}}
urlpatterns = [
    path("sitemap.xml", views.index, _SITEMAPS),
    path(
        "sitemap-<section>.xml", views.sitemap, _SITEMAPS,
        name="django.contrib.sitemaps.views.sitemap",
    ),
]  # fmt: skip


def prepared(pages: list[Page]) -> None:
    """Set Django up, with `pages` as its models would hold them."""
    if not settings.configured:
        settings.configure(
            ALLOWED_HOSTS=[HOST], ROOT_URLCONF=__name__, USE_I18N=False,
            INSTALLED_APPS=["django.contrib.sitemaps"],
            TEMPLATES=[
                {"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}
            ],
        )  # fmt: skip
        django.setup()
    PagesSitemap.pages = [
        (page.loc.removeprefix(BASE), datetime.fromisoformat(page.lastmod)) for page in pages
    ]


def rendered(_: list[Page]) -> Files:
    """The files that the views answer with, and last the index."""
    handler = WSGIHandler()
    index = _get(handler, "/sitemap.xml", "")
    for number, listed in enumerate(_LISTED.findall(index), 1):
        where, _, query = listed.decode().removeprefix(BASE).partition("?")
        yield f"pages-{number}.xml.gz", igzip.compress(_get(handler, where, query), 2)
    yield "sitemap.xml", index


def _get(handler: WSGIHandler, where: str, query: str) -> bytes:
    statuses: list[str] = []

    def start_response(status: str, *_: Any) -> None:
        statuses.append(status)

    environ = {
        "REQUEST_METHOD": "GET", "PATH_INFO": where, "QUERY_STRING": query, "SCRIPT_NAME": "",
        "SERVER_NAME": HOST, "SERVER_PORT": "443", "HTTP_HOST": HOST, "wsgi.url_scheme": "https",
        "wsgi.input": BytesIO(), "wsgi.errors": sys.stderr,
    }  # fmt: skip
    response = handler(environ, start_response)
    content = b"".join(response)
    response.close()
    assert statuses == ["200 OK"], (where, query, statuses)
    return content
