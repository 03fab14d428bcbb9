"""The text of /metrics is what Prometheus's own parsers and promtool read as it was meant."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from shared.metrics import exposition
from shared.metrics.collector import lines_by_metric
from shared.metrics.counter_samples import HistogramBuckets, MetricSample, counted, waited
from shared.metrics.declarations import METRICS, Label, Metric
from shared.store.counting.counters import BOUNDS_MS, WaitHistogram

READERS: dict[str, Callable[[str], Any]] = {
    exposition.TEXT: read_text, exposition.OPENMETRICS: read_openmetrics
}  # fmt: skip
SCRAPER = (  # as Prometheus 3 asks
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
TWO = (Label("site", "a site", most=9), Label("what", "anything", most=9))


def written(metrics: Sequence[Metric], samples: Sequence[MetricSample], kind: str) -> str:
    texts = {name: [text] for name, text in lines_by_metric(samples).items()}
    return exposition.document(texts, metrics, kind).decode()


def read(text: str, kind: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in READERS[kind](text)
        for sample in family.samples
    }


@pytest.mark.parametrize("kind", READERS)
@given(
    values=st.dictionaries(
        st.tuples(WORDS, WORDS), st.floats(allow_nan=False) | st.integers(-(2**63), 2**63),
        max_size=5,
    ),
    meaning=WORDS.map(str.strip).filter(bool),
)  # fmt: skip
def test_any_value_and_any_text_come_out_as_they_went_in(
    kind: str, values: dict[tuple[str, str], float], meaning: str
) -> None:
    metric = Metric("sitemapd_x", "gauge", meaning, TWO)
    samples = [MetricSample(metric, labels, value) for labels, value in values.items()]

    text = written([metric], samples, kind)

    assert read(text, kind) == {
        ("sitemapd_x", (("site", site), ("what", what))): float(value)
        for (site, what), value in values.items()
    }
    (family,) = READERS[kind](text)
    assert family.documentation == meaning
    assert family.type == "gauge"


@pytest.mark.parametrize("kind", READERS)
@given(st.lists(st.integers(0, 2**40), min_size=3, max_size=3), st.floats(0, 1e12))
def test_a_histogram_is_read_with_its_buckets_sum_and_count(
    kind: str, counts: list[int], total: float
) -> None:
    metric = Metric("sitemapd_wait_seconds", "histogram", "a wait", TWO[:1], "seconds")
    upto = [sum(counts[: n + 1]) for n in range(3)]
    buckets = HistogramBuckets(tuple(zip(("0.1", "1.0", "+Inf"), upto, strict=True)), total)

    found = read(written([metric], [MetricSample(metric, ("demo",), buckets)], kind), kind)

    site = ("site", "demo")
    assert found["sitemapd_wait_seconds_count", (site,)] == upto[-1]
    assert found["sitemapd_wait_seconds_sum", (site,)] == total
    assert found["sitemapd_wait_seconds_bucket", (("le", "+Inf"), site)] == upto[-1]
    finite = [
        found.get(("sitemapd_wait_seconds_bucket", (("le", le), site))) for le in ("0.1", "1.0")
    ]
    assert finite == (upto[:2] if upto[-1] else [None, None])


@pytest.mark.parametrize("kind", READERS)
def test_numbers_that_are_no_number_are_read(kind: str) -> None:
    metric = Metric("sitemapd_x", "gauge", "x", TWO[:1])
    odd = {"nan": math.nan, "most": math.inf, "least": -math.inf}
    samples = [MetricSample(metric, (name,), value) for name, value in odd.items()]

    found = read(written([metric], samples, kind), kind)

    assert [str(value) for value in found.values()] == ["nan", "inf", "-inf"]


def every_metric() -> list[MetricSample]:
    """Samples of all metrics, with a quotation mark, a backslash and a line break in the labels."""
    stored = {"answered:accepted:0": 3, "answered:accepted:us": 9, "refused:stale": 2}
    samples = [
        *counted("demo", stored, {}),
        waited("demo", WaitHistogram((1,) * (len(BOUNDS_MS) + 1), 5)),
    ]
    named = {sample.metric.name for sample in samples}
    return samples + [
        MetricSample(metric, tuple('a"b\\c\n' for _ in metric.labels), 1.5)
        for metric in METRICS
        if metric.name not in named
    ]


@pytest.mark.parametrize("kind", READERS)
def test_every_declared_metric_is_read_with_its_type_and_unit(kind: str) -> None:
    families = {each.name: each for each in READERS[kind](written(METRICS, every_metric(), kind))}

    for metric in METRICS:
        name = metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name
        assert families[name].type == metric.kind
        assert families[name].documentation == metric.meaning
        assert families[name].unit == (metric.unit if kind == exposition.OPENMETRICS else "")


@pytest.mark.skipif(not shutil.which("promtool"), reason="Prometheus's promtool is not installed")
def test_promtool_finds_nothing_to_say() -> None:
    text = written(METRICS, every_metric(), exposition.TEXT)
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False
    )

    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", exposition.TEXT), ("text/plain", exposition.TEXT), ("*/*", exposition.TEXT),
        (SCRAPER, exposition.OPENMETRICS),
        ("application/openmetrics-text; version=1.0.0", exposition.OPENMETRICS),
    ],
)  # fmt: skip
def test_openmetrics_is_for_those_that_ask_for_it(accept: str, kind: str) -> None:
    assert exposition.content_type(accept) == kind
