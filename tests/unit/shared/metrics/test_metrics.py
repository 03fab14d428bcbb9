"""The table of metrics follows Prometheus's rules, and what is counted comes out as it went in."""

from __future__ import annotations

import re

import pytest

from shared.metrics.counter_samples import HistogramBuckets, counted, waited
from shared.metrics.declarations import ANSWER_BOUNDS_MS, METRICS, Metric
from shared.store.counting.counters import BOUNDS_MS, WaitHistogram

UNITS = ("seconds", "bytes")


def name(metric: Metric) -> str:
    return metric.name


def test_every_name_is_declared_once() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    fields = [metric.field for metric in METRICS if metric.field]
    assert len(set(fields)) == len(fields)


@pytest.mark.parametrize("metric", METRICS, ids=name)
def test_a_metric_is_named_as_prometheus_advises(metric: Metric) -> None:
    """prometheus.io/docs/practices/naming, and what `promtool check metrics` asks for."""
    assert re.fullmatch(r"sitemapd_[a-z][a-z0-9]*(_[a-z0-9]+)*", metric.name)
    assert metric.meaning
    assert metric.meaning[-1] != "."
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert not metric.name.endswith(("_count", "_sum", "_bucket", "_info_total"))
    named = [unit for unit in UNITS if metric.name.endswith(f"_{unit}")]
    assert named == ([metric.unit] if metric.unit else [])
    assert not re.search(r"_(ms|kb|mb|minutes|milliseconds)(_|$)", metric.name)


@pytest.mark.parametrize("metric", METRICS, ids=name)
def test_every_label_is_explained_and_bounded(metric: Metric) -> None:
    for label in metric.labels:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", label.name)
        assert label.name not in {"le", "quantile", "job", "instance"}
        assert label.meaning
        assert label.values or 0 < label.most <= 1_000


def test_a_histogram_adds_its_classes_up() -> None:
    counts = [0] * (len(BOUNDS_MS) + 1)
    counts[0], counts[3], counts[-1] = 2, 5, 1

    sample = waited("demo", WaitHistogram(tuple(counts), 3_600_123))

    assert isinstance(sample.value, HistogramBuckets)
    upto = dict(sample.value.upto)
    assert upto[str(BOUNDS_MS[0] / 1000)] == upto[str(BOUNDS_MS[2] / 1000)] == 2
    assert upto[str(BOUNDS_MS[3] / 1000)] == upto[str(BOUNDS_MS[-1] / 1000)] == 7
    assert upto["+Inf"] == 8
    assert sample.value.total_s == pytest.approx(3_600.123)


def test_answers_are_counted_by_outcome_and_class() -> None:
    last = len(ANSWER_BOUNDS_MS)
    stored = {"answered:accepted:0": 3, f"answered:accepted:{last}": 1, "answered:accepted:us": 9}

    samples = {sample.labels: sample.value for sample in counted("demo", stored, {})}

    found = samples["demo", "accepted"]
    assert isinstance(found, HistogramBuckets)
    assert found.upto[0] == ("0.001", 3)
    assert found.upto[-1] == ("+Inf", 4)
    assert found.total_s == pytest.approx(9e-6)


def test_what_has_more_or_fewer_parts_than_labels_is_no_sample() -> None:
    plain = list(counted("demo", {}, {}))
    assert plain == list(counted("demo", {"refused": 3, "refused:a:b": 3, "accepted:x": 3}, {}))
