"""Whatever lies in Celery's queue is never executed, and holds nothing up (RELIABILITY T25)."""

from __future__ import annotations

import base64
import json
import os
import pickle
from pathlib import Path
from typing import Any

import redis

from tests.system.driver import System, wait_until


class Bomb:
    """Makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._path),)


def message(body: bytes, kind: str, task: str) -> bytes:
    properties = {
        "delivery_tag": "1", "delivery_info": {"exchange": "", "routing_key": "sitemapd"},
        "body_encoding": "base64", "correlation_id": "1", "reply_to": "1", "priority": 0,
    }  # fmt: skip
    return json.dumps(
        {
            "body": base64.b64encode(body).decode(), "content-encoding": "binary",
            "content-type": kind, "headers": {"task": task, "id": "1", "lang": "py"},
            "properties": properties,
        }
    ).encode()  # fmt: skip


COUNTS = "{_sitemapd}:counts"
JUNK = (
    b"\xff no message at all", b"", b"canary", b"7", b"[]", b"null", b"{}", b'{"properties": 7}',
    b'{"properties": {"delivery_tag": "1"}}', b'{"body": "***", "properties": {}}',
    b"[" * 100_000, b'{"body": "' + b"x" * 20_000_000 + b'"}', b"\x00" * 1_000_000,
    json.dumps({"body": "%%%", "headers": [], "properties": {"delivery_tag": []}}).encode(),
    json.dumps({
        "body": "e30=", "content-type": 7, "headers": {"task": ["canary"]},
        "properties": {"delivery_tag": "1", "body_encoding": "base64", "delivery_info": {}},
    }).encode(),
)  # fmt: skip
"""None of these is a message."""


def test_messages_of_others_are_not_executed_and_hold_nothing_up(
    system: System, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    bomb = pickle.dumps(([Bomb(trap)], {}, {}))
    assert os.path.lexists(pickle.loads(bomb) and trap)
    trap.rmdir()
    worker, log = system.pid("worker"), system.home / "logs" / "worker.log"
    with redis.Redis(unix_socket_path=str(system.home / "redis" / "redis.sock")) as client:
        ours = b'[["demo"], {}, {"callbacks": null, "chain": null}]'
        pickled = "application/x-python-serialize"
        client.lpush("sitemapd", message(bomb, pickled, "sitemapd.wake"))
        client.lpush("sitemapd", message(b"[[7], {}, {}]", "application/json", "sitemapd.wake"))
        client.lpush("sitemapd", message(b'[["no"], {}, {}]', "application/json", "os.system"))
        for junk in JUNK:
            for queue in ("sitemapd", "sitemapd.reconcile", "sitemapd.notify"):
                client.lpush(queue, junk)
        system.send({"type": "upsert", "loc": f"{system.base}/a"})

        wait_until(lambda: list(system.published()) == [f"{system.base}/a"], "it is published")
        wait_until(
            lambda: not client.exists("sitemapd", "sitemapd.reconcile", "sitemapd.notify"),
            "the queues are empty",
        )
        wait_until(
            lambda: int(client.hget(COUNTS, "messages_dropped") or 0) == 3 * len(JUNK) + 3,
            "all are counted",
        )
        client.lpush("sitemapd", message(ours, "application/json", "sitemapd.wake"))
        wait_until(lambda: not client.llen("sitemapd"), "it still listens")

    said = log.read_text(errors="replace")
    assert not trap.exists()
    assert system.pid("worker") == worker
    assert "Traceback" not in said
    lines = [line for line in said.splitlines() if "message dropped" in line]
    assert 3 < len(lines) < 3 * len(JUNK)
    assert "canary" not in said
