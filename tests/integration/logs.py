"""What is logged in tests: kept, or kept out."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, MutableMapping
from types import ModuleType
from typing import Any

import structlog
from structlog.testing import capture_logs


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Without a line per decision, which takes longer than deciding."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    try:
        yield
    finally:
        structlog.configure(**before)


@contextlib.contextmanager
def captured(module: ModuleType) -> Iterator[list[MutableMapping[str, Any]]]:
    """All that `module` logs: a test before this may have bound its logger for good, or have set
    another level.
    """
    before = structlog.get_config()
    for value in vars(module).values():
        if type(value).__module__.startswith("structlog"):
            vars(value).pop("bind", None)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET))
    try:
        with capture_logs() as logs:
            yield logs
    finally:
        structlog.configure(**before)
