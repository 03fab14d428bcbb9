"""`/metrics`: the declared metrics for Prometheus, limited to those the token gives access to."""

from __future__ import annotations

import redis
from flask import Response, g, request

from shared.config.settings import Settings
from shared.errors import StoreError
from shared.metrics import exposition
from shared.metrics.collector import Collector, lines_by_metric, of_process, of_server
from shared.metrics.declarations import METRICS, SITE
from webhook import auth
from webhook.problems import PROBLEMS, UnauthorizedError
from webhook.request_body import headers
from webhook.tenants import Gate


class MetricsView:
    """View of `GET /metrics`. The metrics token shows everything, a site's token that site."""

    def __init__(self, settings: Settings, gate: Gate, client: redis.Redis) -> None:
        self._gate, self._client = gate, client
        self._token = settings.metrics_token.get_secret_value().encode("ascii")
        self._tokens = {
            name: [token.get_secret_value().encode("ascii") for token in site.tokens]
            for name, site in settings.sites.items()
        }
        self._collector = Collector(client, settings.sites, tuple(PROBLEMS))

    def get(self) -> Response:
        """Return all metrics that the Bearer token may see. Raises UnauthorizedError without a
        valid one.
        """
        given = auth.bearer(headers(request.environ))
        sites = [name for name, tokens in self._tokens.items() if auth.any_equal([given], tokens)]
        everything = bool(self._token) and auth.any_equal([given], [self._token])
        if not sites and not everything:
            raise UnauthorizedError("token-wrong")
        texts = self._texts(list(self._tokens) if everything else sites, everything=everything)
        # A metric without samples is declared all the same, unless it belongs to no site and only
        # sites are shown.
        shown = [
            metric
            for metric in METRICS
            if everything or texts.get(metric.name) or SITE in metric.labels
        ]
        kind = exposition.content_type(request.headers.get("accept", ""))
        return Response(exposition.document(texts, shown, kind), content_type=kind)

    def _texts(self, sites: list[str], *, everything: bool) -> dict[str, list[str]]:
        texts: dict[str, list[str]] = {}
        samples = of_process(up=True)
        try:
            with self._gate.passing():
                texts = self._collector.texts(sites)
                samples += list(of_server(self._client)) if everything else []
        except StoreError as error:
            g.facts["reason"] = str(error)
            texts, samples = {}, of_process(up=False)
        for name, text in lines_by_metric(samples).items():
            texts.setdefault(name, []).append(text)
        return texts
