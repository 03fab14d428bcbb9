"""Text of metrics for Prometheus: the text format 0.0.4, and OpenMetrics 1.0. Pure.

A line of a sample is the same in both, only the heads of families differ. So the lines of one site
can be kept while its values are the same: a scrape of hundreds of sites joins them.

github.com/prometheus/docs/blob/main/docs/instrumenting/exposition_formats.md
github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from shared.metrics.counter_samples import HistogramBuckets, MetricSample
from shared.metrics.declarations import METRICS, Metric

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_LABEL = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})


def content_type(accept: str) -> str:
    """Return the content type for a scraper that sent this header Accept."""
    asked = {each.partition(";")[0].strip() for each in accept.split(",")}
    return OPENMETRICS if OPENMETRICS.partition(";")[0] in asked else TEXT


def lines(sample: MetricSample) -> str:
    """Return the lines of a sample, with its labels by name: one, or those of a histogram."""
    metric, value = sample.metric, sample.value
    named = zip(metric.labels, sample.labels, strict=True)
    labels = ",".join(sorted(f'{label.name}="{text.translate(_LABEL)}"' for label, text in named))
    if isinstance(value, HistogramBuckets):
        return "".join(_of_histogram(metric.name, labels, value))
    return f"{metric.name}{f'{{{labels}}}' if labels else ''} {_number(value)}\n"


def _of_histogram(name: str, labels: str, value: HistogramBuckets) -> Iterator[str]:
    """Yield the lines of a histogram. One that counted nothing has the infinite bucket alone: most
    histograms of a site never count.
    """
    count, around = value.upto[-1][1], f"{{{labels}}}" if labels else ""
    head = f"{name}_bucket{{{labels}{',' if labels else ''}le="
    for bound, upto in value.upto if count else value.upto[-1:]:
        yield f'{head}"{bound}"}} {upto}\n'
    yield f"{name}_sum{around} {_number(value.total_s)}\n"
    yield f"{name}_count{around} {count}\n"


def document(
    texts: Mapping[str, Sequence[str]], metrics: Iterable[Metric] = METRICS, kind: str = TEXT
) -> bytes:
    """Return the exposition of `metrics`, with the lines of each by its name in `texts`."""
    whole = list[str]()
    for metric in metrics:
        whole.append(_head(metric, openmetrics=kind == OPENMETRICS))
        whole += texts.get(metric.name, ())
    if kind == OPENMETRICS:
        whole.append("# EOF\n")
    return "".join(whole).encode()


def _head(metric: Metric, *, openmetrics: bool) -> str:
    name, meaning = metric.name, metric.meaning.translate(_HELP)
    if not openmetrics:
        return f"# HELP {name} {meaning}\n# TYPE {name} {metric.kind}\n"
    name = name.removesuffix("_total") if metric.kind == "counter" else name
    meaning = meaning.replace('"', r"\"")
    unit = f"# UNIT {name} {metric.unit}\n" if metric.unit else ""
    return f"# HELP {name} {meaning}\n# TYPE {name} {metric.kind}\n{unit}"


def _number(value: float) -> str:
    """Return a value as Prometheus reads it: whole numbers without a fraction."""
    if math.isfinite(value):
        whole = int(value)
        return str(whole) if whole == value and abs(whole) < 1 << 53 else repr(float(value))
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
