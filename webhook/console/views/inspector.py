"""Page inspector: where a page is listed, or why it is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import request

from shared.errors import UrlError
from shared.sitemap import urls
from webhook.console.page_registry import PageRegistry, Shown, query_arg

_AS_LISTED = ("lastmod", "changefreq", "priority")
_NESTED = ("images", "videos", "news", "alternates")


def install(registry: PageRegistry) -> None:
    """Register the page Page inspector."""

    def show() -> Shown:
        sites = registry.services.sites
        loc, asked = query_arg("loc"), registry.site() if request.args.get("site") else ""
        values: dict[str, Any] = {"loc": loc, "asked": asked, "sites": sites, "found": None}
        if not loc:
            return Shown("inspector.html", values | {"refused": ""})
        name, refused = _site_of(registry, loc, asked)
        if not name:
            return Shown("inspector.html", values | {"refused": refused}, 422)
        found = registry.services.inspector(name).entry(loc)
        values |= {
            "found": found, "name": name, "refused": "", "verdict": verdict(found),
            "command": ("sitemapd", "entry", found["loc"], "--site", name),
            "listed_as": [(key, found[key]) for key in _AS_LISTED if key in found],
            "nested": [(key, found[key]) for key in _NESTED if key in found],
        }  # fmt: skip
        return Shown("inspector.html", values)

    registry.page("Page inspector", "/inspector", show)


def _site_of(registry: PageRegistry, loc: str, asked: str) -> tuple[str, str]:
    """Return the site that `loc` belongs to, or the reason why it belongs to none."""
    refused = ""
    for name in [asked] if asked else registry.services.sites:
        try:
            urls.canonical(loc, registry.services.sites[name].base)
        except UrlError as error:
            refused = refused or f"{error.detail} (PROTOCOL {error.rule})."
        else:
            return name, ""
    return "", refused or "No site is configured."


def verdict(found: Mapping[str, Any]) -> tuple[str, str]:
    """Return a grade (good, busy, warn, bad) and a few words for the state of a page."""
    if "held" in found:
        return "warn", "Held by the shrink guard"
    if not found["listed"]:
        return "bad", "Not listed"
    if not found["published"]:
        return "busy", "Accepted, not published yet"
    return "good", "Listed"
