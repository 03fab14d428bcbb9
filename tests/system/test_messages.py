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


def test_messages_of_others_are_not_executed_and_hold_nothing_up(
    system: System, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    bomb = pickle.dumps(([Bomb(trap)], {}, {}))
    assert os.path.lexists(pickle.loads(bomb) and trap)
    trap.rmdir()
    worker = system.pid("worker")
    with redis.Redis(unix_socket_path=str(system.home / "redis" / "redis.sock")) as client:
        pickled = "application/x-python-serialize"
        client.lpush("sitemapd", message(bomb, pickled, "sitemapd.wake"))
        client.lpush("sitemapd", message(b"[[7], {}, {}]", "application/json", "sitemapd.wake"))
        client.lpush("sitemapd", message(b'[["no"], {}, {}]', "application/json", "os.system"))
        client.lpush("sitemapd", b"\xff no message at all")
        system.send({"type": "upsert", "loc": f"{system.base}/a"})

        wait_until(lambda: list(system.published()) == [f"{system.base}/a"], "it is published")
        wait_until(lambda: not client.llen("sitemapd"), "the queue is empty")

    assert not trap.exists()
    log = (system.home / "logs" / "worker.log").read_text(errors="replace")
    assert "ContentDisallowed" in log or system.pid("worker") != worker
