"""The client that goes into a Wagtail project, told what Wagtail 8 told its listeners."""

from __future__ import annotations

import base64
import builtins
import json
import urllib.request
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.unit.decided import Site
from tests.unit.webhook.sources.delivering import PATH, WHSEC, config, delivered
from tests.unit.webhook.sources.test_corpus import CAPTURED, captured
from webhook.sources import wagtail
from webhook.sources.adapter import Delivery

SIGNALS = (
    "page_published", "page_unpublished", "page_slug_changed", "post_page_move", "post_delete"
)  # fmt: skip
KID, TOP = "/dest/alpha-renamed/kid/", "/dest/alpha-renamed/"
PUBLIC = {
    "01-admin-create-draft": set(),
    "02-admin-publish": {"/alpha/"},
    "03-admin-save-draft-on-live": {"/alpha/"},
    "05-child-create-and-publish": {"/alpha/", "/alpha/kid/"},
    "06-slug-change-saved-as-draft": {"/alpha/", "/alpha/kid/"},
    "07-slug-change-publish": {"/alpha-renamed/", "/alpha-renamed/kid/"},
    "09b-move": {"/dest/", TOP, KID},
    "10-unpublish-parent-only": {"/dest/", KID},
    "11-republish": {"/dest/", TOP, KID},
    "12-unpublish-with-descendants": {"/dest/"},
    "13-republish-both": {"/dest/", TOP, KID},
    "15-schedule-go-live": {"/dest/", TOP, KID},
    "16-publish_scheduled-command": {"/dest/", TOP, KID, "/sched/"},
    "18-expire-command": {"/dest/", TOP, KID},
    "19-delete-parent-with-child": {"/dest/"},
    "20b-bulk-delete": {"/dest/"},
}


class Page:
    """One row of a Wagtail database, as far as the client reads it."""

    rows: dict[int, Page] = {}
    last_published_at = None
    private = False

    def __init__(self, said: dict[str, Any]) -> None:
        self.pk, self.live, self.full_url = said["id"], said["live"], said["full_url"]

    def get_view_restrictions(self) -> Any:
        return SimpleNamespace(exists=lambda: self.private)

    def get_descendants(self, *, inclusive: bool) -> list[Page]:
        assert inclusive
        here = self.full_url
        return [page for page in self.rows.values() if page.full_url.startswith(here)]


class Manager:
    def get(self, pk: int) -> Page:
        return Page.rows[pk]

    def filter(self, pk: int) -> Any:
        return SimpleNamespace(first=lambda: Page.rows.get(pk))


class Project:
    """A Django project with the client in it: signals, transactions, and what is sent."""

    def __init__(self) -> None:
        Page.rows, Page.objects = {}, Manager()  # type: ignore[attr-defined]
        self.receivers: dict[str, list[Any]] = {name: [] for name in SIGNALS}
        self.committing: list[Any] = []
        self.sent: list[Delivery] = []
        self._modules = {
            "django.conf": SimpleNamespace(settings=SimpleNamespace(SITEMAPD=("http://x", WHSEC))),
            "django.db": SimpleNamespace(transaction=SimpleNamespace(on_commit=self._on_commit)),
            "django.db.models.signals": SimpleNamespace(post_delete=self._signal("post_delete")),
            "wagtail": SimpleNamespace(
                signals=SimpleNamespace(**{name: self._signal(name) for name in SIGNALS})
            ),
            "wagtail.models": SimpleNamespace(Page=Page),
            "urllib.request": SimpleNamespace(
                request=SimpleNamespace(Request=urllib.request.Request, urlopen=self._sent)
            ),
        }
        known = {**vars(builtins), "__import__": self._import}
        exec(wagtail.CLIENT, {"__builtins__": known})

    def _import(self, name: str, *rest: Any) -> Any:
        return self._modules[name] if name in self._modules else __import__(name, *rest)

    def _signal(self, name: str) -> Any:
        return SimpleNamespace(connect=lambda receiver, **_: self.receivers[name].append(receiver))

    def _on_commit(self, call: Any, robust: bool) -> None:
        assert robust
        self.committing.append(call)

    def _sent(self, request: urllib.request.Request, timeout: float) -> None:
        assert timeout <= 5
        given = {name.lower(): value for name, value in request.header_items()}
        assert isinstance(request.data, bytes)
        self.sent.append(Delivery("POST", PATH + "wagtail", given, request.data))

    def tell(self, signal: str, said: dict[str, Any]) -> None:
        for receiver in self.receivers.get(signal, ()):
            receiver(sender=None, instance=Page(said))

    def save(self, said: dict[str, Any]) -> None:
        """A row changes, and so do the addresses below it."""
        known = Page.rows.get(said["id"])
        before = known.full_url if known else said["full_url"]
        for page in Page.rows.values():
            if page.full_url.startswith(before):
                page.full_url = page.full_url.replace(before, said["full_url"], 1)
        Page.rows[said["id"]] = Page(said)

    def commit(self) -> list[Delivery]:
        for call in self.committing:
            call()
        made, self.sent, self.committing = self.sent, [], []
        return made


@pytest.mark.skipif(not CAPTURED.is_dir(), reason=f"no captured webhooks: {CAPTURED}")
def test_wagtail_lists_after_each_action_what_was_public() -> None:
    project, site, listed = Project(), Site(), {}
    where = config("wagtail", "http://localhost")
    for record in captured("wagtail-8"):
        body = json.loads(record["body_raw"])
        signal, said = body["signal"], body["page"]
        if signal == "post_save" and body["extra"]["update_fields"] == "None":
            project.save(said)
        if signal == "post_delete":
            Page.rows.pop(said["id"], None)
        project.tell(signal, said)
        if not body["in_atomic_block"] or signal == "post_delete":
            for hook in project.commit():
                at = float(hook.headers["webhook-timestamp"])
                site.take(*delivered(hook, where, at).events)
        listed[record["label"]] = {urlsplit(loc).path for loc in site.listed}

    assert {label: listed[label] for label in PUBLIC} == PUBLIC


def test_a_page_behind_a_privacy_restriction_is_not_listed() -> None:
    project = Project()
    said = {"id": 4, "live": True, "full_url": "https://www.example.com/secret/"}
    project.save(said)
    Page.rows[4].private = True
    project.tell("page_published", said)

    (hook,) = project.commit()
    assert json.loads(hook.body) == [{"type": "delete", "id": 4, "loc": said["full_url"]}]


def test_a_page_that_moved_to_another_parent_takes_its_descendants_along() -> None:
    project = Project()
    for number, path in ((4, "a/"), (5, "a/b/"), (6, "c/")):
        project.save({"id": number, "live": True, "full_url": "https://www.example.com/" + path})
    project.tell("post_page_move", {"id": 4, "live": True, "full_url": "ignored"})

    (hook,) = project.commit()
    assert {item["id"] for item in json.loads(hook.body)} == {4, 5}
    assert base64.b64decode(hook.headers["webhook-signature"].removeprefix("v1,"))
