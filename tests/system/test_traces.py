"""One event's trace, from the POST that brought it to the rename that published it.

Real processes send to a collector that speaks OTLP over HTTP (opentelemetry.io/docs/specs/otlp).
"""

from __future__ import annotations

import gzip
import http.server
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.system.driver import System, wait_until

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
CANARY = "a-page-nobody-may-read-about"


class Span(NamedTuple):
    trace: str
    ident: str
    parent: str
    name: str
    part: str
    attributes: dict[str, str]
    links: frozenset[str]


class Collector:
    """What was exported to it."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.raw = b""
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                outer.take(body)
                reply = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_: object) -> None:
                """Nothing: it is asked for what it got."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def take(self, body: bytes) -> None:
        self.raw += body
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            about = {each.key: each.value.string_value for each in group.resource.attributes}
            assert about["service.name"] == "sitemapd"
            for span in (span for scope in group.scope_spans for span in scope.spans):
                self.spans.append(
                    Span(
                        span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(),
                        span.name, about["sitemapd.part"],
                        {a.key: str(a.value).strip() for a in span.attributes},
                        frozenset(link.trace_id.hex() for link in span.links),
                    )
                )  # fmt: skip

    def of(self, trace: str) -> dict[str, Span]:
        """The spans of one trace by name."""
        return {span.name: span for span in self.spans if span.trace == trace}

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()
    try:
        yield collector
    finally:
        collector.stop()


def test_one_trace_leads_from_the_post_to_the_rename(tmp_path: Path) -> None:
    with collecting() as collector:
        wanted = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "SITEMAPD_LOG_LEVEL": "debug",
        }
        system = System(tmp_path / "home", wanted)
        system.start()
        try:
            follow(system, collector)
        finally:
            system.stop()
    decided = log_line(system, "worker", "decided")
    assert decided["trace_id"] == TRACE
    assert decided["reason"]
    assert log_line(system, "web", "answered")["trace_id"] == TRACE
    for secret in (CANARY.encode(), system.key, b"whsec_"):
        assert secret not in collector.raw


def follow(system: System, collector: Collector) -> None:
    event = {"type": "upsert", "loc": f"{system.base}/{CANARY}"}
    traced = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    status, _ = system.post(json.dumps(event).encode(), headers=traced)
    assert status == 202
    wait_until(lambda: "rename" in collector.of(TRACE), "the rename to be exported")
    wanted = {"publish", "decide", "accept", "POST /v1/sites/<site>/events"}
    wait_until(lambda: wanted <= set(collector.of(TRACE)), "all of the trace")

    spans = collector.of(TRACE)
    post = spans["POST /v1/sites/<site>/events"]
    assert post.parent == PARENT
    assert post.part == "web"
    assert "202" in post.attributes["http.response.status_code"]
    chain = ["accept", "decide", "publish"]
    for name, parent in zip(chain, [post.name, *chain], strict=False):
        assert spans[name].parent == spans[parent].ident, name
    assert {spans["stage"].parent, spans["rename"].parent} == {spans["publish"].ident}
    assert {spans[name].part for name in ("decide", "publish", "stage", "rename")} == {"worker"}
    linked_to_all_of_a_batch(system, collector)


def linked_to_all_of_a_batch(system: System, collector: Collector) -> None:
    """Deliveries that are decided together are linked to: none of them alone is the cause."""
    assert system.run("publish").returncode == 0
    deadline = time.monotonic() + 30
    sent = 0
    while time.monotonic() < deadline:
        traces = [f"{sent + n:032x}" for n in range(1, 9)]
        for n, trace in enumerate(traces):
            event = {"type": "upsert", "loc": f"{system.base}/{sent + n}"}
            headers = {"traceparent": f"00-{trace}-{PARENT}-01"}
            assert system.post(json.dumps(event).encode(), headers=headers)[0] == 202
        sent += len(traces)
        system.quiet()
        batches = [span for span in collector.spans if span.name == "decide" and span.links]
        if any(span.trace not in span.links and len(span.links) > 1 for span in batches):
            return
    pytest.fail("no batch of several deliveries")


def log_line(system: System, part: str, event: str) -> dict[str, str]:
    """The first line of a part's log about an event, of those that say which trace."""
    log = (system.home / "logs" / f"{part}.log").read_text().splitlines()
    lines = [json.loads(line) for line in log if line.startswith("{")]
    return next(line for line in lines if line["event"] == event and "trace_id" in line)
