"""Logs: one structured line per decision, to standard error; never a body, secret or signature."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from shared.lean_imports import importing_less
from shared.telemetry import tracing
from shared.telemetry.log_writer import LogWriter, have_streams
from shared.visible_text import visible

if TYPE_CHECKING:
    import structlog

_OUT, _ERR = 1, 2


_level_of_first: str | None = None
"""The level of `configure_later`, until this process has logging."""


def configure_later(*, level: str) -> None:
    """Set up logging with the first logger: a command that needs none starts faster."""
    if "structlog" in sys.modules:  # there may be loggers already
        configure(level=level)
        return
    global _level_of_first  # noqa: PLW0603  # one for the process, as its standard error is
    have_streams()
    _level_of_first = level


def configure(
    *,
    json_lines: bool | None = None,
    level: str = "info",
    traced_as: str = "",
    streams: bool = False,
) -> None:
    """Set up logging of this process; JSON lines unless standard error is a terminal.

    Traces are set up too, under the name `traced_as`, if the environment asks for them. With
    `streams`, all output of this process is written like log lines, for processes that must
    continue when output fails (RELIABILITY F29).
    """
    global _level_of_first  # noqa: PLW0603  # see configure_later
    _level_of_first = None
    import logging

    _load_structlog()
    import structlog

    have_streams()
    if streams:
        same = os.path.sameopenfile(_OUT, _ERR)
        sys.stdout = sys.__stdout__ = _writer(_ERR if same else _OUT)  # type: ignore[assignment, misc]
        sys.stderr = sys.__stderr__ = _writer(_ERR)  # type: ignore[assignment, misc]
    lack = tracing.configure(traced_as) if traced_as else ""
    if json_lines is None:
        json_lines = not sys.stderr.isatty()
    # JSON escapes control characters itself.
    renderers: list[structlog.typing.Processor] = (
        [_json_line]
        if json_lines
        else [_visible_values, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    )
    structlog.configure(
        processors=[_completed, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.WriteLoggerFactory(file=_writer(_ERR)),  # type: ignore[arg-type]
        cache_logger_on_first_use=True,
    )
    if lack:
        logger("logs").warning("tracing is off", reason=lack)


@cache
def _writer(descriptor: int) -> LogWriter:
    return LogWriter(
        descriptor, lambda lines: logger("logs").warning("log lines lost", lines=lines)
    )


def drain() -> None:
    """Wait until all lines so far are written, at most 1 s for each of the two streams."""
    for descriptor in (_OUT, _ERR):
        _writer(descriptor).drain()


def logger(part: str) -> structlog.typing.FilteringBoundLogger:
    """The logger of one part of the system."""
    if _level_of_first is not None:
        configure(level=_level_of_first)
    _load_structlog()
    import structlog

    log: structlog.typing.FilteringBoundLogger = structlog.get_logger(part=part)
    return log


@cache
def _load_structlog() -> None:
    # It loads rich where that is installed, for tracebacks that are not used here: 0.16 s.
    with importing_less("rich"):
        import structlog  # noqa: F401


_encode = json.JSONEncoder(default=repr).encode


def _completed(
    logger: object, method: str, line: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """The line with its level, trace and moment, and an exception as text. In one step: structlog's
    own four took half of the time of a line.
    """
    line["level"] = "error" if method == "exception" else method
    if tracing.active:
        tracing.in_log(logger, method, line)
    line["timestamp"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    if "exc_info" in line:
        import structlog

        return structlog.processors.format_exc_info(logger, method, line)
    return line


def _json_line(_logger: object, _method: str, line: Mapping[str, Any]) -> str:
    return _encode(line)


def _visible_values(
    _logger: object, _method: str, line: MutableMapping[str, Any]
) -> Mapping[str, Any]:
    """Names and values of a log line, safe for a terminal; a traceback keeps its lines."""
    shown = {visible(name): _visible_value(value) for name, value in line.items()}
    if isinstance(trace := line.get("exception"), str):
        # indented, so that no line of a message looks like a line of the log
        shown["exception"] = "\n".join("  " + visible(each) for each in trace.split("\n"))
    return shown


def _visible_value(value: object) -> object:
    # repr, as of a list, escapes its content
    return visible(value) if isinstance(value, str) else value
