"""Whatever an action of the pages Events, Queues and Failed could do, only its form does, sent by
an operator from there (RELIABILITY T26, T27); whatever their senders say is text (T28).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import redis

from shared.admin.queues import QueueActions
from shared.store.pages.changes import log_entry
from tests.integration.console.browsing import CANARY, SECRETS, TOKENS, Browser
from tests.integration.rig import BASE, Rig

Unchanged = Callable[[], Any]

ACTIONS: dict[str, dict[str, str]] = {
    "/admin/events/replay": {"id": "DECIDED"},
    "/admin/events/replay-all/now": {"events": "1", "url": f"{BASE}decided"},
    "/admin/queues/pause": {"queue": "publish"},
    "/admin/queues/resume": {"queue": "notify"},
    "/admin/queues/drain": {},
    "/admin/queues/purge/now": {"events": "1"},
    "/admin/queues/put-back": {"purge": "PURGED"},
    "/admin/failed/retry": {"id": "LETTER", "events": "1"},
    "/admin/failed/discard": {"all": "yes", "events": "1"},
}
PAGES = (
    "/admin/events", "/admin/events?kind=waiting", "/admin/events?kind=failed",
    "/admin/events/replay-all", "/admin/events/one?id=DECIDED", "/admin/events/one?id=WAITING",
    "/admin/events/one?id=FAILED", "/admin/queues", "/admin/queues/purge",
    "/admin/queues/purged?purge=PURGED", "/admin/failed", "/admin/failed?error=broken",
    "/admin/failed/ask?do=discard&all=yes", "/admin/failed/ask?id=LETTER",
    "/admin/failed/save?all=yes", "/admin/events/one?id=refused", "/admin/events?kind=refused",
    "/admin/events?kind=ignored",
)  # fmt: skip


class Stuck(Rig):
    """A site with one event of each fate, by name."""

    def __init__(self, store: redis.Redis, root: Path) -> None:
        super().__init__(store, root, sections={"posts": {"split": "month"}})
        self.send({"type": "upsert", "loc": "purged"})
        queues = QueueActions(store, "demo")
        queues.purge()
        (decided,) = self.send({"type": "upsert", "loc": "decided"})
        self.settle()
        letter: Any = store.xadd(
            "{demo}:dead",
            {
                "id": "5-5",
                "error": "broken",
                "tries": "5",
                "e": '{"v":1,"type":"upsert","loc":"x"}',
            },
        )
        queues.pause("notify", "bob")
        (waiting,) = self.send({"type": "upsert", "loc": "waiting"})
        self.names = {
            "DECIDED": decided, "WAITING": waiting, "FAILED": "5-5", "LETTER": letter.decode(),
            "PURGED": next(iter(queues.purges())),
        }  # fmt: skip

    def named(self, text: str) -> str:
        for name, value in self.names.items():
            text = text.replace(name, value)
        return text

    def form(self, path: str) -> dict[str, str]:
        return {"site": "demo"} | {key: self.named(of) for key, of in ACTIONS[path].items()}


@pytest.fixture
def stuck(store: redis.Redis, tmp_path: Path) -> Stuck:
    return Stuck(store, tmp_path / "a")


@pytest.mark.parametrize("path", ACTIONS)
def test_t26_t27_nothing_is_done_but_by_the_form_of_an_operator(
    browser: Browser, stuck: Stuck, unchanged: Unchanged, path: str
) -> None:
    form = stuck.form(path)
    assert browser.post(path, csrf="", **form).status_code == 303
    browser.login("vic")
    csrf = browser.csrf()
    with unchanged():
        assert browser.post(path, csrf=csrf, **form).status_code == 403
    browser.login("ann")
    csrf = browser.csrf()
    with unchanged():
        assert browser.post(path, csrf="x", **form).status_code == 403
        assert (
            browser.post(path, csrf=csrf, origin="https://evil.example", **form).status_code == 403
        )
        assert browser.get(f"{path}?{urlencode(form | {'csrf': csrf})}").status_code in {404, 405}
        assert browser.get(path).status_code in {404, 405}

    said = browser.act(path, **form)

    assert "<b>Done:</b>" in said, re.findall(r'class="flash.*', said)


def test_t27_no_page_changes_anything(browser: Browser, stuck: Stuck, unchanged: Unchanged) -> None:
    for path in PAGES:
        assert browser.get(stuck.named(path)).status_code == 303
    browser.login("vic")
    with unchanged():
        for path in PAGES:
            answer = browser.get(stuck.named(path))
            assert answer.status_code in {200, 404}, path
            assert "POST" not in answer.headers.get("Allow", "")
            assert re.findall(r'<form method="post" action="([^"]+)', answer.text) in (
                ["/admin/logout"], [],
            )  # fmt: skip


def test_t30_no_page_shows_a_secret(browser: Browser, stuck: Stuck) -> None:
    browser.login("ann")
    known = [*SECRETS.values(), *TOKENS.values()]
    for path in PAGES:
        text = browser.get(stuck.named(path)).text
        assert [secret for secret in known if secret in text] == []


def test_t28_what_events_say_is_text(ann: Browser, store: redis.Redis) -> None:
    payload = json.dumps({"v": 1, "type": CANARY, "loc": CANARY, "source": CANARY}).encode()
    decided = log_entry([("1-1", CANARY, CANARY, True)], [payload])
    at: Any = store.xadd("{demo}:recent", {"decided": decided})
    said = {"request": "0f" * 8, "status": 400, "code": CANARY, "reason": CANARY, "source": CANARY,
            "faults": [{"rule": CANARY, "field": CANARY, "detail": CANARY}]}  # fmt: skip
    store.xadd("{demo}:refused", {"refused": json.dumps(said)})
    ignored = {"source": CANARY, "reasons": [CANARY], "subject": CANARY}
    store.xadd("{demo}:recent", {"ignored": json.dumps(ignored)})
    fields: Any = {"id": "2-2", "error": CANARY, "tries": 5, "e": payload}
    letter: Any = store.xadd("{demo}:dead", fields)
    store.xadd("{demo}:dead", fields | {"id": "3-3", "e": CANARY})
    waiting: Any = store.xadd("{demo}:inbox", {"e": payload})
    store.xgroup_create("{demo}:inbox", "workers", "0")
    for queue in ("events", "publish", "notify", "intake"):
        store.hset("{demo}:paused", queue, f"1795000000000 {CANARY}")
    one = "/admin/events/one?id="
    pages = {
        path: ann.get(path)
        for path in (
            "/admin/events", "/admin/events?kind=failed", "/admin/events?kind=waiting",
            f"/admin/events?url={CANARY}&reason={CANARY}&since={CANARY}&before={CANARY}",
            f"/admin/events?kind={CANARY}", f"{one}{waiting.decode()}", f"{one}2-2", f"{one}3-3",
            f"{one}{'0f' * 8}", f"{one}1-1", f"{one}{CANARY}", "/admin/events/replay-all",
            f"/admin/events/replay-all?url={CANARY}", "/admin/queues", "/admin/queues/purge",
            f"/admin/queues/purged?purge={CANARY}", "/admin/failed",
            f"/admin/failed?error={CANARY}", f"/admin/failed/ask?error={CANARY}&do={CANARY}",
            f"/admin/failed/ask?id={letter.decode()}&do=discard", f"/admin/failed/ask?id={CANARY}",
        )
    }  # fmt: skip

    assert at
    for path, answer in pages.items():
        assert answer.status_code in {200, 404, 422}, path
        assert "<script>alert" not in answer.text, path
        assert not re.search(r"\son\w+=|\sstyle=|javascript:", answer.text), path
    shown = "".join(answer.text for answer in pages.values())
    assert shown.count("&lt;script&gt;alert(1)") > 40
    ann.act("/admin/failed/discard", site="demo", error=CANARY, events="2")
    ann.act("/admin/queues/pause", site=CANARY, queue=CANARY)
    assert "<script>alert" not in ann.get("/admin/audit").text
    assert store.xlen("{demo}:dead") == 0
