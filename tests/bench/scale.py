"""Sizes of a run: the full form for figures, a tiny one that shows that every row runs."""

from __future__ import annotations

from typing import NamedTuple


class Scale(NamedTuple):
    """Sizes of one run.

    `urls` is the large site and `small` the one beside it, `shard` the full shard of which one URL
    is edited; `events` go through rates and HTTP, `singles` of them one by one; `rounds` are the
    interleaved pairs of a row, of which `warm` are not counted. Rates are compared in `slices` of
    `slice_s` seconds; events are published in a site of `shards`; `tasks` go through plain Celery.
    One event is compared with `small` in sites of the sizes `sites`, of shards of `shard_urls`;
    `source` URLs are imported; `many` sites are in one service, which is idle for `rest_s` seconds.
    `flood` events flood sites beside quiet ones, which get `probes` events, one every `probe_s`
    seconds at most.
    """

    urls: int = 1_000_000
    small: int = 10_000
    shard: int = 50_000
    events: int = 100_000
    singles: int = 4_000
    rounds: int = 120
    warm: int = 5
    slices: int = 3
    slice_s: float = 1.5
    shards: int = 1_000
    tasks: int = 2_000
    sites: tuple[int, ...] = (1_000_000, 10_000_000)
    shard_urls: int = 10_000
    source: int = 200_000
    many: int = 500
    rest_s: float = 20.0
    flood: int = 60_000
    probes: int = 200
    probe_s: float = 0.02


FULL = Scale()
TINY = Scale(
    urls=1_000, small=500, shard=1_000, events=1_000, singles=40, rounds=6, warm=1, slices=1,
    slice_s=0.2, shards=20, tasks=20, sites=(1_000,), shard_urls=100, source=1_000,
    many=3, rest_s=1.0, flood=500, probes=5, probe_s=0.0,
)  # fmt: skip
