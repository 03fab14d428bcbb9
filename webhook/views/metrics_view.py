"""`/metrics`: the declared metrics for Prometheus, limited to those the token gives access to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import redis
from flask import Response, g, request
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector as Registry

from shared.config.settings import Settings
from shared.errors import StoreError
from shared.metrics.collector import Collector, of_process, of_server
from shared.metrics.counter_samples import HistogramBuckets, MetricSample
from shared.metrics.declarations import METRICS, SITE
from shared.metrics.declarations import Metric as Declared
from webhook import auth
from webhook.problems import PROBLEMS, UnauthorizedError
from webhook.request_body import headers
from webhook.tenants import Gate

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


class MetricsView:
    """View of `GET /metrics`. The metrics token shows everything, a site's token that site."""

    def __init__(self, settings: Settings, gate: Gate, client: redis.Redis) -> None:
        self._gate, self._client = gate, client
        self._token = settings.metrics_token.get_secret_value().encode("ascii")
        self._tokens = {
            name: [token.get_secret_value().encode("ascii") for token in site.tokens]
            for name, site in settings.sites.items()
        }
        self._collectors = {
            name: Collector(client, name, site, tuple(PROBLEMS))
            for name, site in settings.sites.items()
        }

    def get(self) -> Response:
        """Return all metrics that the Bearer token may see. Raises UnauthorizedError without a
        valid one.
        """
        given = auth.bearer(headers(request.environ))
        sites = [name for name, tokens in self._tokens.items() if auth.any_equal([given], tokens)]
        everything = bool(self._token) and auth.any_equal([given], [self._token])
        if not sites and not everything:
            raise UnauthorizedError("token-wrong")
        families = _families(self._samples(sites, everything=everything), everything=everything)
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(_Given(families)), content_type=kind)

    def _samples(self, sites: list[str], *, everything: bool) -> list[MetricSample]:
        try:
            with self._gate.passing():
                if everything:
                    sites = list(self._collectors)
                found = list(chain(*(self._collectors[name].samples() for name in sites)))
                if everything:
                    found += of_server(self._client, sites)
        except StoreError as error:
            g.facts["reason"] = str(error)
            return of_process(up=False)
        return found + of_process(up=True)


class _Given(Registry):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)


def _families(samples: list[MetricSample], *, everything: bool) -> list[Metric]:
    """Return the samples by metric, in the order of METRICS. A metric without samples is declared
    all the same, unless it belongs to no site and only sites are shown.
    """
    families = {metric.name: _family(metric) for metric in METRICS}
    shown = {sample.metric.name for sample in samples}
    for sample in samples:
        family, value = families[sample.metric.name], sample.value
        if isinstance(family, HistogramMetricFamily):
            assert isinstance(value, HistogramBuckets)
            family.add_metric(sample.labels, value.upto, value.total_s)
        else:
            assert not isinstance(value, HistogramBuckets)
            family.add_metric(sample.labels, value)
    return [
        families[metric.name]
        for metric in METRICS
        if everything or metric.name in shown or SITE in metric.labels
    ]


def _family(metric: Declared) -> Family:
    names = [label.name for label in metric.labels]
    kinds: dict[str, type[Family]] = {
        "counter": CounterMetricFamily,
        "gauge": GaugeMetricFamily,
        "histogram": HistogramMetricFamily,
    }
    return kinds[metric.kind](metric.name, metric.meaning, labels=names, unit=metric.unit)
