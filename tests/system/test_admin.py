"""What an administrator does while everything runs."""

from __future__ import annotations

import json
from typing import Any

from tests.system.driver import System, wait_until


def said(system: System, *arguments: str) -> Any:
    result = system.run(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_what_is_paused_waits_what_is_closed_is_refused_and_both_go_on(system: System) -> None:
    page = f"{system.base}/a"
    said(system, "queue", "pause", "events")
    worker = system.pid("worker")
    system.kill("worker")
    wait_until(lambda: system.pid("worker") != worker, "there is a new worker")
    (ident,) = system.send({"type": "upsert", "loc": page})
    assert said(system, "event", "show", ident)["state"] == "waiting"
    assert "events are paused by cli:" in system.run("event", "show", page).stdout
    assert system.published() == {}

    said(system, "queue", "resume", "events")
    said(system, "queue", "drain")

    assert set(system.published()) == {page}
    shown = said(system, "event", "show", ident)
    assert [shown["state"], *(step["step"] for step in shown["steps"])] == [
        "published", "accepted", "decided", "applied", "published",
    ]  # fmt: skip
    assert shown["lines"] == [{"before": None, "after": f"<url><loc>{page}</loc></url>"}]

    body = json.dumps({"type": "upsert", "loc": f"{system.base}/b"}).encode()
    status, problem = system.post(body)
    assert (status, problem["code"]) == (503, "closed")

    def listed() -> bool:
        found = said(system, "event", "list", "--kind", "refused")
        return [each["said"]["request"] for each in found] == [problem["request_id"]]

    wait_until(listed, "the refusal is listed")
    assert "503 closed" in system.run("event", "show", problem["request_id"]).stdout
    said(system, "queue", "resume", "intake")
    assert system.post(body)[0] == 202
    wait_until(lambda: len(system.published()) == 2, "it is open again")
    system.quiet()
