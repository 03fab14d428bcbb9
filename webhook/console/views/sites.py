"""Page of a site's configuration, without secrets, and of its robots.txt."""

from __future__ import annotations

import os
import re
import stat
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from shared.config.notify.hubs import SUBSCRIBE
from shared.config.sites.section import Section
from shared.config.sites.site import Site
from shared.domain.routing import family_of
from shared.sitemap.robots import MAX_BYTES
from shared.store.notify.subscriptions import Subscription, Subscriptions
from shared.store.publishing.publish_state import PublishState
from webhook.console.page_registry import PageRegistry, Shown

SHOWN = (
    "base_url", "web_root", "form", "index", "viewer", "hints", "emit_deprecated", "engines",
    "publish_interval", "rate", "check_interval", "shard_urls", "shard_bytes", "index_shards",
    "shrink_share", "shrink_minutes", "shrink_least", "feed", "feed_entries", "hub",
)  # fmt: skip
"""Settings that are shown as they are; a new setting is shown only if it is added here."""

_STATES = {
    "new": "busy", "asked": "busy", "active": "good", "denied": "bad", "failed": "bad",
    "lapsed": "bad",
}  # fmt: skip
"""A grade for each state of a subscription; an ended one is quiet."""

_HEX = re.compile("[0-9a-fA-F]{16,}")
"""Matches the secret and the callback in a hub's message, which are hex
(shared/config/notify/hubs.py).
"""

_MARKER = b"# BEGIN sitemapd"


def install(registry: PageRegistry) -> None:
    """Register the page Sites."""

    def show() -> Shown:
        name = registry.site()
        site = registry.services.sites[name]
        state = PublishState(registry.services.client, name)
        values = {
            "name": name, "settings": [(key, _said(getattr(site, key))) for key in SHOWN],
            "may": _may(site), "truth": _truth(site), "robots": robots(site),
            "site_robots": site.robots,
            "sections": _sections(site, state), "connections": _connections(site),
            "feeds": _feeds(site, Subscriptions(registry.services.client, name).all()),
        }  # fmt: skip
        return Shown("sites.html", values)

    registry.page("Sites", "/sites", show, per_site=True)


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, (int, float)) else str(value) or "none"


def _may(site: Site) -> Mapping[str, int]:
    """Return the number of secrets and tokens, never their values."""
    return {"secrets": len(site.secrets), "tokens": len(site.tokens)}


def _truth(site: Site) -> Mapping[str, str]:
    """Return the kind of the source; its address may hold a password."""
    source = site.source.get_secret_value()
    kind = source.partition(":")[0]
    plain = "sitemap" if kind in {"http", "https"} or ":" not in source else kind
    every = f"every {site.reconcile_hours:g} h" if site.reconcile_hours else "on a resync"
    return {"kind": plain, "every": every} if source else {}


def _sections(site: Site, state: PublishState) -> list[dict[str, Any]]:
    """Return each configured section with its rules, and what is published of it and its parts."""
    files, urls = Counter[str](), Counter[str]()
    for shard, file in state.files(state.sections()).items():
        family = family_of(shard.section, site.limits.keys())
        files[family] += 1
        urls[family] += file.urls
    plain = Section()  # type: ignore[call-arg]
    return [
        {
            "name": name, "most": limits.urls, "files": files[name], "urls": urls[name],
            "takes": [*rules.paths, *rules.languages], "split": rules.split, "news": rules.news,
        }
        for name, limits in site.limits.items()
        for rules in (site.sections.get(name, plain),)
    ]  # fmt: skip


def _connections(site: Site) -> list[dict[str, Any]]:
    return [
        {"name": name, "secrets": len(each.secret), "permalinks": dict(each.permalinks)}
        for name, each in site.sources.items()
    ]


def _feeds(site: Site, known: list[Subscription]) -> list[dict[str, Any]]:
    """Return each feed that is or was subscribed to, with the state of its subscription."""
    source, now = site.sources.get("websub"), time.time()
    found = {each.topic: each for each in known}
    feeds = dict.fromkeys([*(source.topics if source else ()), *found])
    rows = []
    for each in (found.get(feed, Subscription(feed)) for feed in feeds):
        until = each.until / 1000 if each.until else None
        lapsed = each.mode == SUBSCRIBE and until is not None and until <= now
        state = "lapsed" if lapsed else each.state
        rows.append(
            {
                "feed": _address(each.topic), "hub": _address(each.hub), "until": until,
                "state": state, "grade": _STATES.get(state, "quiet"),
                "wanted": each.mode == SUBSCRIBE, "why": _HEX.sub("…", each.why),
            }
        )  # fmt: skip
    return rows


def _address(url: str) -> str:
    """Return the address of a feed or a hub; its user, query and fragment may be keys."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "unknown"
    more = "?…" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}{more}" if url else ""


def robots(site: Site) -> tuple[str, str]:
    """Return the state of robots.txt: a grade (good, warn, quiet) and a sentence."""
    if site.robots == "off":
        return "quiet", "Not changed, as configured: add the sitemap to it yourself."
    try:
        file = os.open(site.web_root / "robots.txt", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        why = "the first publish creates it" if site.robots == "create" else "make one"
        return "warn", f"There is none: {why}."
    except OSError as error:
        return "warn", f"It cannot be read from here: {error.strerror}."
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return "warn", "It is not a regular file and is not changed."
        text = opened.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        return "warn", "It is larger than crawlers read and is not changed."
    if _MARKER in text:
        return "good", "It names the sitemap, between the markers of sitemapd."
    if b"sitemap:" in text.lower():
        return "quiet", "It names a sitemap, outside the markers of sitemapd."
    return "warn", "It names no sitemap yet: the next publish adds it."
