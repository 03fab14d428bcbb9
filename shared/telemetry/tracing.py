"""OpenTelemetry traces, from the POST that brings an event to the rename that publishes it.

Active if `OTEL_EXPORTER_OTLP_ENDPOINT` (or `..._TRACES_ENDPOINT`) is set and the extra
`sitemapd[otel]` is installed; the standard `OTEL_*` variables configure the rest. Otherwise nothing
is wrapped, and callers ask `active` before they call. Spans carry site names, counts and codes:
never a body, an address of a page, a header or a secret (RELIABILITY T30).
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer

P = ParamSpec("P")
R = TypeVar("R")

MOST_LINKS = 128
"""Links of one span that OpenTelemetry keeps by default."""

PACKAGE = "opentelemetry"
"""Not imported by a process that is not traced: redis-py would load its whole SDK, 0.08 s."""

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
active = False
"""True once this process is traced."""

_tracer: Tracer | None = None
_traced: list[tuple[str, Callable[..., Any]]] = []
"""Name of the span and method of each class, to be wrapped when tracing begins."""

_NOTHING = nullcontext()


def wanted() -> bool:
    """True if the environment asks for traces."""
    off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    none = os.environ.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp"
    return not off and not none and any(os.environ.get(name) for name in _ENDPOINTS)


def configure(part: str) -> str:
    """Begin to trace this process, as `part` of the service, if the environment asks for it.

    Return the reason if tracing was asked for and is not possible, else an empty text.
    """
    global _tracer, active  # one for the process, as the standard variables are
    if not wanted() or _tracer is not None:
        return ""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        return "OTEL_* asks for traces, but they are not installed: pip install 'sitemapd[otel]'"
    name = os.environ.get("OTEL_SERVICE_NAME", "sitemapd")
    resource = Resource.create({"service.name": name, "sitemapd.part": part})
    provider = TracerProvider(resource=resource)  # sends queued spans at exit
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _tracer, active = provider.get_tracer("sitemapd"), True
    while _traced:
        _wrap_in_class(*_traced.pop())
    return ""


def serving(headers: Mapping[str, str], route: str) -> AbstractContextManager[None]:
    """The span of a request; it continues the trace that the sender names.

    CloudEvents may carry the trace as an extension, in a header of its own (CloudEvents
    Distributed Tracing 1.0).
    """
    if _tracer is None:
        return _NOTHING
    parent = headers.get("traceparent") or headers.get("ce-traceparent") or ""
    given = {"http.request.method": "POST", "http.route": route}
    return _span(_tracer, f"POST {route}", given, [parent], serves=True)


def traced(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a method: each call within a trace is a span.

    Until tracing begins the method stays as it is, so that a process without traces pays nothing.
    """

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        if active:
            return _wrapped(name, method)
        _traced.append((name, method))
        return method

    return decorate


def _wrapped(name: str, method: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if _tracer is None or not carry():
            return method(*args, **kwargs)
        with _span(_tracer, name, {}):
            return method(*args, **kwargs)

    return call


def _wrap_in_class(name: str, method: Callable[..., Any]) -> None:
    """Replace `method` in its class, which is found by its qualified name."""
    *path, attribute = method.__qualname__.split(".")
    owner = functools.reduce(getattr, path, sys.modules[method.__module__])
    setattr(owner, attribute, _wrapped(name, method))


def carry() -> str:
    """The current context as a W3C traceparent; empty without one."""
    if _tracer is None:
        return ""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent", "")


def note(attributes: Mapping[str, object]) -> None:
    """Add the attributes that are not None to the current span."""
    if _tracer is not None:
        from opentelemetry.trace import get_current_span

        current = get_current_span()
        for name, value in attributes.items():
            if value is not None:
                current.set_attribute(name, value)  # type: ignore[arg-type]


def in_log(
    _logger: object, _method: str, line: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Add the ids of the current trace and span to a log line (a processor of structlog)."""
    if _tracer is not None and (context := carry()):
        line["trace_id"], line["span_id"] = context.split("-")[1:3]
    return line


class Trail:
    """Traces of the batches that one site's worker has decided and not published yet, so that the
    span of a publish pass is the child of one batch, or linked to several.
    """

    def __init__(self, site: str) -> None:
        self._site = site
        self._decided: list[str] = []

    def deciding(self, traces: Iterable[str]) -> AbstractContextManager[None]:
        """The span of a batch whose events came with these contexts (empty text: none)."""
        return _NOTHING if _tracer is None else self._deciding(_tracer, [*traces])

    @contextmanager
    def _deciding(self, tracer: Tracer, traces: list[str]) -> Iterator[None]:
        given: dict[str, str | int] = {"sitemapd.site": self._site, "sitemapd.events": len(traces)}
        with _span(tracer, "decide", given, [*dict.fromkeys(traces)]):
            yield
            self._decided = [*self._decided[1 - MOST_LINKS :], carry()]

    def publishing(self) -> AbstractContextManager[None]:
        """The span of a publish pass over these batches; no span if there are none."""
        if _tracer is None or not self._decided:
            return _NOTHING
        return _span(_tracer, "publish", {"sitemapd.site": self._site}, self._decided)

    def end(self) -> None:
        """Forget the batches, which are all published."""
        self._decided.clear()


@contextmanager
def _span(
    tracer: Tracer,
    name: str,
    attributes: Mapping[str, str | int],
    causes: Sequence[str] | None = None,
    *,
    serves: bool = False,
) -> Iterator[None]:
    """A span: the child of its only cause, linked to several; without `causes`, of the current one.

    Of an error only the class is recorded: its message may hold data of a sender.
    """
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, SpanKind, StatusCode, get_current_span

    context, links = None if causes is None else Context(), []
    if causes is not None and len(causes) == 1:
        context = _context(causes[0])
    elif causes:
        linked = [get_current_span(_context(each)).get_span_context() for each in causes if each]
        links = [Link(each) for each in linked[:MOST_LINKS] if each.is_valid]
    with tracer.start_as_current_span(
        name, context, kind=SpanKind.SERVER if serves else SpanKind.INTERNAL, links=links,
        attributes=attributes, record_exception=False, set_status_on_exception=False,
    ) as span:  # fmt: skip
        try:
            yield
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(StatusCode.ERROR)
            raise


def _context(traceparent: str) -> Context:
    """The context of a traceparent; an empty one if it cannot be read."""
    from opentelemetry import context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    empty = context.Context()
    return TraceContextTextMapPropagator().extract({"traceparent": traceparent}, context=empty)
