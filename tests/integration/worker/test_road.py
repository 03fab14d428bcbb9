"""The road of one event: every module that it visits, from the POST to the files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import redis

import webhook.app
from tests.integration.conftest import SECRET, RedisServer, Signer
from tests.integration.profiling import calling
from tests.integration.rig import BASE, Rig

ROOT = Path(webhook.app.__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_MODULES, MOST_JUMPS = 24, 91
"""HOUSE 1. Who makes the road longer gives the reason here."""


@contextmanager
def traced() -> Iterator[list[str]]:
    """Each module of ours in which a function is called, as often as the module changes."""
    road: list[str] = []

    def called(frame: FrameType) -> None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT):
            name = str(path.relative_to(ROOT))
            ours = name.startswith(("shared/", "webhook/", "worker/", "deploy/"))
            if ours and road[-1:] != [name]:
                road.append(name)

    with calling(called):
        yield road


def test_the_readme_lists_the_road_of_one_event_in_its_order(
    redis_server: RedisServer, store: redis.Redis, tmp_path: Path, signed: Signer
) -> None:
    rig = Rig(store, tmp_path / "public", secrets=[SECRET])
    settings = rig.settings.model_copy(update={"redis_url": redis_server.url})
    web, consumer = webhook.app.create_app(settings).test_client(), rig.pump()

    def post(loc: str) -> int:
        body = json.dumps({"type": "upsert", "loc": BASE + loc}).encode()
        headers = signed(body, ident=loc)
        return web.post("/v1/sites/demo/events", data=body, headers=headers).status_code

    assert post("first") == 202
    consumer.run()  # what is done once for a process is no part of the road

    with traced() as road:
        answered = post("second")
        consumer.run()

    assert answered == 202
    assert set(rig.listed()) == {f"{BASE}first", f"{BASE}second"}
    section = README.partition("## The road of one event")[2].partition("\n## ")[0]
    named = [path for path in re.findall(r"\]\(([\w/]+\.py)\)", section) if "tasks" not in path]
    assert named == list(dict.fromkeys(road)), "README's list is not the road"
    assert len(set(road)) <= MOST_MODULES, sorted(set(road))
    assert len(road) <= MOST_JUMPS
