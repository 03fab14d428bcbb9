"""Samples of the declared metrics, made from the hash `stats` of a site. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from shared.metrics.declarations import (
    ANSWER_BOUNDS_MS,
    DECLARED,
    METRICS,
    OTHER,
    SITE,
    Label,
    Metric,
)
from shared.store.counting.counters import BOUNDS_MS, WaitHistogram

_WORD = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")
_WAITED = DECLARED["sitemapd_event_to_published_seconds"]


class HistogramBuckets(NamedTuple):
    """A histogram: the counts up to each bound (s; the last is infinite), and the sum (s)."""

    upto: tuple[tuple[str, int], ...]
    total_s: float


class MetricSample(NamedTuple):
    """One value; `labels` in the order in which the metric declares them."""

    metric: Metric
    labels: tuple[str, ...]
    value: float | HistogramBuckets


def waited(site: str, waits: WaitHistogram) -> MetricSample:
    """The sample of the time that events waited for their files."""
    return MetricSample(_WAITED, (site,), _buckets(BOUNDS_MS, waits.counts, waits.sum_ms / 1000))


def counted(
    site: str, counts: Mapping[str, int], known: Mapping[str, Sequence[str]]
) -> Iterator[MetricSample]:
    """Every sample of the counters of `site`, an empty name for those of no site.

    `known`: by field, the values of a label that the configuration bounds. Undeclared values
    count as OTHER, so that no sender can make a label grow.
    """
    by_field: dict[str, list[tuple[list[str], int]]] = {}
    for name, count in sorted(counts.items()):
        field, *values = name.split(":")
        by_field.setdefault(field, []).append((values, count))
    for metric in METRICS:
        if not metric.field or metric is _WAITED or SITE not in metric.labels:
            continue
        found = by_field.get(metric.field, [])
        if metric.kind == "histogram":
            yield from _answers(metric, site, found)
        else:
            yield from _counter(metric, site, found, known.get(metric.field))


def _counter(
    metric: Metric, site: str, found: list[tuple[list[str], int]], known: Sequence[str] | None
) -> Iterator[MetricSample]:
    labels = [
        label._replace(values=tuple(known)) if known is not None else label
        for label in metric.labels[1:]
    ]
    # A counter that begins with its first count shows no increase at that time.
    sums: dict[tuple[str, ...], int] = {} if labels else {(): 0}
    if len(labels) == 1:
        sums = {(value,): 0 for value in labels[0].values}
    seen: list[set[str]] = [set() for _ in labels]
    for values, count in found:
        if len(values) == len(labels):
            kept = tuple(map(_bounded, labels, values, seen))
            sums[kept] = sums.get(kept, 0) + count
    for kept, count in sums.items():
        yield MetricSample(metric, (site, *kept), float(count))


def _bounded(label: Label, value: str, seen: set[str]) -> str:
    if label.values:
        return value if value in label.values else OTHER
    if not _WORD.fullmatch(value) or len(seen | {value}) >= label.most:
        return OTHER
    seen.add(value)
    return value


def _answers(
    metric: Metric, site: str, found: list[tuple[list[str], int]]
) -> Iterator[MetricSample]:
    counts = {tuple(values): count for values, count in found}
    for answer in metric.labels[1].values:
        classes = [counts.get((answer, str(n)), 0) for n in range(len(ANSWER_BOUNDS_MS) + 1)]
        total_s = counts.get((answer, "us"), 0) / 1e6
        yield MetricSample(metric, (site, answer), _buckets(ANSWER_BOUNDS_MS, classes, total_s))


def _buckets(bounds_ms: Sequence[int], counts: Sequence[int], total_s: float) -> HistogramBuckets:
    upto, below = [], 0
    for bound, count in zip((*bounds_ms, None), counts, strict=True):
        below += count
        upto.append(("+Inf" if bound is None else str(bound / 1000), below))
    return HistogramBuckets(tuple(upto), total_s)
