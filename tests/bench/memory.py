"""Bytes of Redis of a site, by kind of key: what grows with its URLs, and the bounded history."""

from __future__ import annotations

import json
from collections.abc import Iterable

import redis

from shared.batches import batches
from shared.store.keys import Keys
from tests.bench.bed import Bed
from tests.bench.bulk import Page
from tests.bench.report import Figure, Report

HISTORY = ("recent", "revisions", "refused", "notices", "dead", "stats", "pulse:", "hour:",
           "accepted:", "checks")  # fmt: skip
"""Keys whose size has a bound that does not depend on the URLs (store/keys.py)."""
KINDS = {
    "page records": ("loc:", "id:"),
    "blocks": ("section:pages:blocks:",),
    "shards, files and index lines": ("section:", "index:"),
}
MOST, LARGE = 60, 10_000_000
"""Promised bytes per URL, and the smallest site of which that is promised."""
_STEP = 5_000


def used(client: redis.Redis) -> int:
    """Bytes that the server of `client` uses now."""
    return int(client.info("memory")["used_memory"])


def grown(site: Bed) -> dict[str, int]:
    """Bytes of the keys of `site`, by kind; `history` is the one that does not grow with URLs."""
    prefix, found = Keys(site.name).prefix, dict.fromkeys((*KINDS, "others", "history"), 0)
    for keys in batches(site.client.scan_iter(f"{prefix}*", count=_STEP), _STEP):
        pipe = site.client.pipeline(transaction=False)
        for key in keys:
            pipe.memory_usage(key, samples=0)
        for key, size in zip(keys, pipe.execute(), strict=True):
            found[_kind(key.decode().removeprefix(prefix))] += size or 0
    return found


def _kind(name: str) -> str:
    if name.startswith(HISTORY):
        return "history"
    return next((kind for kind, start in KINDS.items() if name.startswith(start)), "others")


def growing(site: Bed) -> int:
    """Bytes of the keys of `site` without its history."""
    found = grown(site)
    return sum(found.values()) - found["history"]


def per_url(report: Report, site: Bed, whole: int, as_json: float) -> None:
    """Bytes of Redis per URL of `site`, without its history, next to the same URLs as raw XML.

    `whole` is what the server uses for it; `as_json` what an URL takes in a hash of JSON.
    """
    count, kinds = site.pages.lookup.count(), grown(site)
    raw = sum(path.stat().st_size for path in site.site.web_root.glob("pages-*.xml")) / count
    value = (whole - kinds["history"]) / count
    what = f"bytes of Redis per URL without history, {count:,} URLs"
    rows = (
        ("raw XML", raw, "<= 0.35x", value <= 0.35 * raw),
        (
            "a hash of JSON",
            as_json,
            *((f"<= {MOST}", value <= MOST) if count >= LARGE else ("", None)),
        ),
    )
    for against, baseline, hold, holds in rows:
        report.add(
            Figure(
                f"{what}, next to {against}", "B", value, against=f"{against} of the same URLs",
                baseline=baseline, ratio=value / baseline, hold=hold, holds=holds,
            )
        )  # fmt: skip
    for kind in KINDS:
        report.add(Figure(f"of these: {kind}, {count:,} URLs", "B", kinds[kind] / count))


def bounded(report: Report, site: Bed) -> None:
    """Bytes of the history of `site`: the same for any number of URLs."""
    name = f"history of bounded size ({', '.join(each.strip(':') for each in HISTORY)})"
    report.add(Figure(f"{name}, in all", "MB", grown(site)["history"] / 1e6))


def json_hash(client: redis.Redis, pages: Iterable[Page], count: int) -> float:
    """Bytes per URL of one Redis hash: loc -> JSON of the other values."""
    before = used(client)
    for part in batches(pages, _STEP):
        client.hset("json", mapping={loc: json.dumps({"lastmod": date}) for loc, date in part})
    took = used(client) - before
    client.delete("json")
    return took / count
