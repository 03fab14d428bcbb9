"""Logs: one structured line per decision, to standard error; never a body, secret or signature."""

from __future__ import annotations

import logging
import sys

import structlog

from shared import tracing


def configure(*, json_lines: bool | None = None, level: str = "info", traced_as: str = "") -> None:
    """Set up logging of this process; JSON lines unless a person is watching.

    And traces, where the environment asks for them, under the name `traced_as`.
    """
    lack = tracing.configure(traced_as) if traced_as else ""
    if json_lines is None:
        json_lines = not sys.stderr.isatty()
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if json_lines
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            tracing.in_log,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    if lack:
        logger("telemetry").warning("not traced", reason=lack)


def logger(part: str) -> structlog.typing.FilteringBoundLogger:
    """The logger of one part of the system."""
    log: structlog.typing.FilteringBoundLogger = structlog.get_logger(part=part)
    return log
