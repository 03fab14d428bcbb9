"""Every log line is a fixed sentence with named facts, which programs can search and count."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from shared.telemetry import logs

ROOT = Path(__file__).resolve().parents[3]
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}

CALLS = re.compile(rf"\.(?:{'|'.join(LEVELS)})\(")
LOGGER = re.compile(r"_?log|.*\blogger\(.*\)", re.IGNORECASE)


def lines() -> Iterator[tuple[str, ast.Call]]:
    """Where each line is logged, and the call."""
    for package in ("shared", "webhook", "worker", "deploy"):
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text()
            # Parsing all of them took 4 s in each process that collects tests.
            for node in ast.walk(ast.parse(text)) if CALLS.search(text) else ():
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                    continue
                if node.func.attr in LEVELS and LOGGER.fullmatch(ast.unparse(node.func.value)):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node


LINES = dict(lines())


def test_there_is_something_to_check() -> None:
    assert len(LINES) > 40


@pytest.mark.parametrize("call", LINES.values(), ids=LINES.keys())
def test_a_line_has_one_constant_sentence_and_named_facts(call: ast.Call) -> None:
    (sentence,) = call.args
    assert isinstance(sentence, ast.Constant)
    named = {word.arg for word in call.keywords if word.arg}
    assert "error" not in named, "why something failed is always called `reason`"
    assert "msg" not in named


@pytest.mark.parametrize("call", LINES.values(), ids=LINES.keys())
def test_what_failed_says_why(call: ast.Call) -> None:
    assert isinstance(call.func, ast.Attribute)
    sentence = ast.literal_eval(call.args[0])
    if call.func.attr == "error" and re.search(r"\b(failed|not)\b", sentence):
        named = {word.arg for word in call.keywords}
        assert named & {"reason", "exc_info", "run", None}


@pytest.mark.parametrize(("level", "shown"), [("info", False), ("debug", True)])
def test_decisions_are_logged_at_debug(
    level: str, shown: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    before = structlog.get_config()
    try:
        logs.configure(json_lines=True, level=level)
        logs.logger("test").debug("decided", site="demo", reason="new page")
        logs.drain()
    finally:
        structlog.configure(**before)

    assert ('"reason": "new page"' in capfd.readouterr().err) == shown


@pytest.mark.parametrize(
    "value", ["\x1b[31mred\x07", "\x9b2J", "a\nerror=all is well", "\u202eexe"]
)
def test_t36_a_line_for_a_terminal_holds_nothing_that_a_terminal_obeys(
    value: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = structlog.get_config()
    try:
        logs.configure(json_lines=False)
        log = logs.logger("test")
        log.info("[/red] decided", site=value, reasons=[value], **{value: "name"})
        log.error("decision failed", exc_info=ValueError(value))
        logs.drain()
    finally:
        structlog.configure(**before)
    said = capfd.readouterr().err

    assert "[/red] decided" in said
    assert said.count(value.encode("unicode_escape").decode()) >= 2
    assert not {char for char in said if not char.isprintable()} - {"\n"}
    assert "\nerror" not in said
