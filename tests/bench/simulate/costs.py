"""What each step costs, derived from the rows of the benchmark; seconds and bytes.

ROWS is the one list of the rows that feed the model, ASSUMED of what no row says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.bench.simulate.counts import APPLY, APPLY_EVENT
from tests.bench.simulate.figures import Figures, Row

_VISIBLE = "event to visible, [\\d,]+ URLs, shards of {}"
SIZES = (2_000, 10_000, 50_000)
ROWS: Mapping[str, Row] = {
    # one event in a site of such shards, p50, and the bare write of its two files beside it
    **{f"visible {size}": Row(_VISIBLE.format(f"{size:,}"), "latency") for size in SIZES},
    # single signed events over eight connections: what one web process takes
    "single": Row("accepted over HTTP, single events, .*", "served"),
    # deliveries of a thousand events of one sender
    "bulk": Row("accepted over HTTP, signed batches of .*", "served"),
    # one script for a hundred events
    "applied": Row("applied, batches of 100", "rates"),
    # read, decide and apply in turn
    "drained": Row("drained .*", "rates"),
    # all files of a site of shards of 10,000, in the gzip form
    "whole": Row("whole site of [\\d,]+ written anew from the state, .*", "peers"),
    "whole bytes": Row("one changed URL of [\\d,]+, bytes: string join .*", "peers"),
    # memory
    "url": Row("bytes of Redis per URL without history, [\\d,]+ URLs, next to raw XML", "sites"),
    "blocks": Row("of these: blocks, [\\d,]+ URLs", "sites"),
    # what is done without any event
    "idle 1": Row("CPU of an idle `up` of 1 site", "idle"),
    "idle many": Row("CPU of an idle `up` of (?!1 site)\\d+ sites", "idle"),
}
ASSUMED = {
    "wake_s": "1.5 ms of Python for a message of Celery, sender and worker together",
    "log": "a flush of Redis's log takes as long as a flush of a file: the same kind of disk",
    "commands": "each command of Redis takes as long as one of those that apply events",
}
_WAKE_S, _BATCH, _INDEX_LINE = 0.001_5, 100, 110


@dataclass(frozen=True)
class Costs:
    """Costs of the steps on a machine like the measured one.

    Of a web process: `deliver_s` for a delivery, `accept_event_s` for each further event. Of the
    one core of Redis: `command_s`. Of the interpreter of a worker: `decide_s` for an event,
    `turn_s` for a batch with its publish pass, `shard_s` and `byte_s` for each file of the pass,
    `wake_s` for a wake-up. Of a disk: `flush_s`, `write_s` for a byte. `spread` is p99 / p50 of a
    step, `flush_spread` of a flush. `idle_*` is the share of a core that each site takes without
    any event. `*_bytes` are those of one URL.
    """

    deliver_s: float
    accept_event_s: float
    command_s: float
    decide_s: float
    turn_s: float
    shard_s: float
    byte_s: float
    wake_s: float
    flush_s: float
    write_s: float
    spread: float
    flush_spread: float
    idle_worker: float
    idle_redis: float
    memory_bytes: float
    block_bytes: float
    xml_bytes: float
    gzip_bytes: float

    @classmethod
    def of(cls, figures: Figures) -> Costs:
        """Derive the costs from `figures`. Raises MissingRowError."""
        rows = {name: figures.row(row) for name, row in ROWS.items()}
        value = {name: float(row["value"]) for name, row in rows.items()}
        xml = figures.value(ROWS["url"], "baseline")
        urls = _number(rows["visible 10000"]["name"])
        sizes = [size * xml + urls / size * _INDEX_LINE for size in SIZES]
        bare = [float(rows[f"visible {size}"]["baseline"]) / 1e3 for size in SIZES]
        ours = [value[f"visible {size}"] / 1e3 for size in SIZES]
        flushes, write_s = _line(sizes, bare)
        flush_s = flushes / 3  # both files and their directory
        own, byte_s = _line(sizes, [a - b for a, b in zip(ours, bare, strict=True)])
        whole_urls = _number(rows["whole"]["name"])
        gzip = value["whole bytes"] * 1e3 / whole_urls
        file_s = value["whole"] / (whole_urls / 10_000)
        shard_s = max(0.1e-3, file_s - flush_s - gzip * 10_000 * write_s)
        apply_s = 1 / value["applied"] - flush_s / _BATCH
        command_s = apply_s / (APPLY.commands / _BATCH + APPLY_EVENT.commands)
        # Two flushes of the log and some 60 commands of Redis are in what one event takes.
        turn_s = own - 2 * flush_s - 60 * command_s - shard_s
        sites = _number(rows["idle many"]["name"])
        idle = (value["idle many"] - value["idle 1"]) / 100 / (sites - 1)
        redis = _share(rows["idle many"], "Redis") / 100 / sites
        middle = rows["visible 10000"]
        return cls(
            deliver_s=1 / value["single"], accept_event_s=1 / value["bulk"], command_s=command_s,
            decide_s=1 / value["drained"] - 1 / value["applied"],
            turn_s=max(turn_s, 0.5e-3), shard_s=shard_s, byte_s=byte_s, wake_s=_WAKE_S,
            flush_s=flush_s, write_s=write_s, spread=middle["p99"] / middle["value"],
            flush_spread=middle["baseline_p99"] / middle["baseline"],
            idle_worker=max(0.0, idle - redis), idle_redis=redis,
            memory_bytes=value["url"], block_bytes=value["blocks"], xml_bytes=xml,
            gzip_bytes=gzip,
        )  # fmt: skip


def _line(at: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Return the value at 0 and the slope of the straight line nearest to `values`; neither is
    below 0.
    """
    middle, mean = sum(at) / len(at), sum(values) / len(values)
    slope = sum((x - middle) * (y - mean) for x, y in zip(at, values, strict=True)) / sum(
        (x - middle) ** 2 for x in at
    )
    slope = max(slope, 0.0)
    return max(mean - slope * middle, 0.0), slope


def _number(name: str) -> int:
    """Return the largest number in the name of a row."""
    return max(int(word.replace(",", "")) for word in name.split() if word[0].isdigit())


def _share(row: Mapping[str, str], process: str) -> float:
    """Return the part of a process in a row of `up` at rest, 0 where it is not told."""
    parts = row["against"].removeprefix("of these: ").split(", ")
    return sum(float(part.split()[1]) for part in parts if part.split()[0] == process)
