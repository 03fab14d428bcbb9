"""Page inspector: where a page is listed, or why it is not; pages found by a part of their URL."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from flask import request

from shared.admin.page_journey import journey_of
from shared.admin.page_search import PageSearch
from shared.errors import UrlError
from shared.sitemap import urls
from webhook.console.page_registry import PageRegistry, Shown, query_arg

_SEARCH_S = 0.25
_MOST = 20
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
        if "://" not in loc and not loc.startswith("/"):
            return Shown("inspector.html", values | _matches(registry, loc, asked))
        loc = values["loc"] = _whole(registry, loc, asked)
        name, refused = _site_of(registry, loc, asked)
        if not name:
            return Shown("inspector.html", values | {"refused": refused}, 422)
        found = registry.services.inspector(name).entry(loc)
        values |= {
            "found": found, "name": name, "refused": "", "verdict": verdict(found),
            "command": ("sitemapd", "entry", found["loc"], "--site", name),
            "journey": journey_of(registry.services.client, name, sites[name], found),
            "read_back": ("sitemapd", "readback", found["loc"], "--site", name),
            "listed_as": [(key, found[key]) for key in _AS_LISTED if key in found],
            "nested": [(key, found[key]) for key in _NESTED if key in found],
        }  # fmt: skip
        return Shown("inspector.html", values)

    registry.page("Page inspector", "/inspector", show)


def _whole(registry: PageRegistry, loc: str, asked: str) -> str:
    """Return `loc` with the origin that a path lacks: of the first site that knows the page, else
    of the first below whose directory it lies.
    """
    if not loc.startswith("/"):
        return loc
    sites, possible = registry.services.sites, list[str]()
    for name in [asked] if asked else sites:
        with suppress(UrlError):
            whole = urls.canonical(sites[name].base.origin + loc, sites[name].base)
            if registry.services.inspector(name).page(whole) is not None:
                return whole
            possible.append(whole)
    return possible[0] if possible else next(iter(sites.values())).base.origin + loc


def _matches(registry: PageRegistry, part: str, asked: str) -> dict[str, Any]:
    """Return the published pages whose URL contains `part`, of each site as many files as can be
    searched in the time for one page view, and the position to go on from.
    """
    names, found = [asked] if asked else list(registry.services.sites), list[tuple[str, Any]]()
    since, _, file = query_arg("after").partition(":")
    names = names[names.index(since) :] if since in names else names
    end, after, said = time.monotonic() + _SEARCH_S, "", list[str]()
    for place, name in enumerate(names):
        search = PageSearch(registry.services.client, name, registry.services.sites[name])
        left = max(end - time.monotonic(), 0.0)
        here = search.containing(
            part, after=file if name == since else "", most=_MOST - len(found), seconds=left
        )
        found += ((name, page) for page in here.pages)
        said.append(f"{name}: {here.searched:,} of {here.files:,} files")
        full = len(found) == _MOST
        if here.after or full or time.monotonic() > end:
            after = "" if full else f"{name}:{here.after}" if here.after else ""
            if not after and not full and place + 1 < len(names):
                after = f"{names[place + 1]}:"
            break
    return {"refused": "", "matches": found, "searched": said, "after": after, "most": _MOST}


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
    if found.get("looked", {}).get("grade") == "broken":
        return "warn", "Listed, but broken"
    return "good", "Listed"
