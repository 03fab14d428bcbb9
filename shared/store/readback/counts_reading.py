"""Numbers of followed pages of many sites, read in one round trip with whatever else is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.config.sites.readback import ReadbackSettings
from shared.store.keys import keys_of
from shared.store.readback.page_chains import PageCounts, count_commands, counts_of
from shared.store.round_trips import Reading

HOUR_MS = 3_600_000


def late_ms(config: ReadbackSettings, now_ms: int) -> int:
    """Return the time before which a page was published that is unknown for too long."""
    return now_ms - int(config.unknown_hours * HOUR_MS)


def counts_reading(
    sites: Mapping[str, ReadbackSettings], now_ms: int
) -> Reading[dict[str, dict[str, PageCounts]]]:
    """Return the Reading of the numbers of each of `sites` by engine."""
    found: dict[str, dict[str, PageCounts]] = {}
    asked: list[tuple[Any, ...]] = []
    for name, config in sites.items():
        key, until = keys_of(name).followed, late_ms(config, now_ms)
        asked += count_commands(key, [*config.engines], until)
    replies = (yield asked) if asked else []
    first = 0
    for name, config in sites.items():
        last = first + 1 + 3 * len(config.engines)
        found[name] = counts_of([*config.engines], replies[first:last])
        first = last
    return found
