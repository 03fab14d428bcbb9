"""Traces are off unless asked for, and say what is missing where they cannot be on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared.telemetry import tracing

ROOT = Path(__file__).resolve().parents[3]
ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
ASK = """
import sys
from shared.telemetry import tracing
said = tracing.configure("test")
print(said, tracing.active, "opentelemetry" in sys.modules)
"""


def ask(environment: dict[str, str], before: str = "") -> str:
    """What a process of this environment says of its traces."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", before + ASK],
        cwd=ROOT, env=kept | environment, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        ENDPOINT | {"OTEL_SDK_DISABLED": "true"},
        ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_what_is_not_asked_for_is_not_even_loaded(environment: dict[str, str]) -> None:
    assert ask(environment) == "False False"


def test_an_endpoint_turns_them_on() -> None:
    assert ask(ENDPOINT) == "True True"


def test_a_missing_package_is_named_with_its_remedy() -> None:
    said = ask(ENDPOINT, "import sys; sys.modules['opentelemetry.sdk'] = None\n")

    assert "pip install 'sitemapd[otel]'" in said
    assert "False" in said


def test_methods_are_wrapped_once_tracing_begins_and_not_before() -> None:
    methods = """
import sys
from shared.telemetry import tracing
class Early:
    @tracing.traced("early")
    def plain(self): return 1
assert not hasattr(Early.plain, "__wrapped__")
tracing.configure("test")
class Late:
    @tracing.traced("late")
    def plain(self): return 2
print(Early().plain(), Late().plain())
print(hasattr(Early.plain, "__wrapped__"), hasattr(Late.plain, "__wrapped__"))
"""
    assert ask(ENDPOINT, methods) == "1 2\nTrue True\n True True"
    assert ask({}, methods) == "1 2\nFalse False\n False False"


def test_what_is_off_does_what_it_did_without() -> None:
    class Doubles:
        @tracing.traced("double")
        def double(self, number: int) -> int:
            return 2 * number

    trail, line = tracing.Trail("demo"), {"event": "said"}

    assert Doubles().double(2) == 4
    assert tracing.carry() == ""
    assert tracing.in_log(None, "info", line) == {"event": "said"}
    with trail.deciding(["not a context"]), trail.publishing():
        trail.end()
    with pytest.raises(ZeroDivisionError), trail.publishing():
        raise ZeroDivisionError
