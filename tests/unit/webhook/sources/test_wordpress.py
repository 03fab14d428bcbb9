"""WordPress: what its hooks fire, brought together for each request as the plugin does it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.unit.decided import Site
from tests.unit.webhook.sources.delivering import SITE, config, delivered, said, signed
from tests.unit.webhook.sources.test_corpus import CAPTURED

_LINE = re.compile(
    r" *\d+ (?P<hook>\w+) .*#(?P<id>\d+) (?P<kind>[\w-]+):(?P<status>[\w-]+)"
    r" slug='[^']*' (?P<path>\S+) mod="
)
PUBLIC = {
    "02-rest-autosave-of-draft": set(),
    "03-rest-publish-draft": {"/2026/11/alpha-post/"},
    "06-rest-slug-change": {"/2026/11/alpha-renamed/"},
    "07-rest-date-change-moves-permalink": {"/2024/02/alpha-renamed/"},
    "08-rest-autosave-of-published": {"/2024/02/alpha-renamed/"},
    "09-rest-unpublish-to-draft": set(),
    "10-rest-republish": {"/2024/02/alpha-renamed/"},
    "11-rest-to-private": set(),
    "12-rest-private-to-publish-with-password": set(),
    "13-rest-remove-password": {"/2024/02/alpha-renamed/"},
    "14-rest-trash": set(),
    "15-admin-untrash": set(),
    "16-rest-publish-again-after-untrash": {"/2024/02/alpha-renamed/"},
    "17-rest-hard-delete-published-force": set(),
    "20b-rest-create-direct-publish-same-title": {
        "/2026/11/scheduled-post/", "/2026/11/bulk-a/", "/2026/11/bulk-a-2/"
    },
    "22-admin-bulk-trash": {"/2026/11/scheduled-post/"},
    "23-new-post-takes-freed-slug": {"/2026/11/scheduled-post/", "/2026/11/bulk-a/"},
    # The posts that had this address before are deleted; it belongs to another one by now.
    "24-admin-empty-trash": {"/2026/11/scheduled-post/", "/2026/11/bulk-a/"},
    "25-admin-quick-edit-slug": {"/2026/11/scheduled-post/", "/2026/11/quick-edited/"},
    "28-page-with-child-create": {
        "/2026/11/scheduled-post/", "/2026/11/quick-edited/", "/parent/", "/parent/child/"
    },
    "29-parent-page-slug-change-moves-child-url": {
        "/2026/11/scheduled-post/", "/2026/11/quick-edited/", "/parent-moved/",
        "/parent-moved/child/",
    },
    # The child is reachable below `parent-moved__trashed` still: no address to be listed.
    "30-parent-page-trash-child-url": {"/2026/11/scheduled-post/", "/2026/11/quick-edited/"},
    "31-media-upload": {"/2026/11/scheduled-post/", "/2026/11/quick-edited/"},
}  # fmt: skip
LATER = {
    "51-edit-while-scheduled": set(),
    "52-publish-slug-change-with-permalink": {"/coal-2/"},
    "53-swap-slugs-between-two-posts": {"/coal-2/", "/swap-a/", "/swap-b/"},
    "54-trash-then-restore-then-publish": {"/coal-2/", "/swap-a/", "/swap-b/"},
    "55-password-protect-published": {"/swap-a/", "/swap-b/"},
    "56-page-parent-rename-moves-child": {"/swap-a/", "/swap-b/", "/p2-moved/", "/p2-moved/c2/"},
    "59-xmlrpc-newpost": {
        "/swap-a/", "/swap-b/", "/p2-moved/", "/p2-moved/c2/", "/via-xmlrpc/"
    },
    "60-wp-cron-publishes": {
        "/swap-a/", "/swap-b/", "/p2-moved/", "/p2-moved/c2/", "/via-xmlrpc/",
        "/really-scheduled/",
    },
}  # fmt: skip


def requests(name: str) -> Iterator[tuple[str, list[re.Match[str]]]]:
    """The hooks that fired in each request, with what the editor did."""
    text = (CAPTURED / "wordpress" / name).read_text(encoding="utf-8")
    for action in text.split("\n## ")[1:]:
        label, _, rest = action.partition("\n")
        for request in f"\n{rest}".split("\n  [")[1:]:
            yield label, [found for line in request.splitlines() if (found := _LINE.match(line))]


class Plugin:
    """What a plugin knows: pages by id, and that a page's descendants move along with it."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}

    def events(self, label: str, hooks: list[re.Match[str]]) -> list[dict[str, object]]:
        """One request's events: the last state of each post, and of what lies below a page."""
        last: dict[str, dict[str, object]] = {}
        for hook in hooks:
            number, path = hook["id"], hook["path"]
            if hook["kind"] not in {"post", "page"}:
                continue
            last.pop(number, None)
            # `?p=` and `__trashed` are sent on purpose: that is the adapter's to notice.
            gone = hook["hook"] == "after_delete_post" or hook["status"] == "private"
            protected = "with-password" in label or "password-protect" in label
            if gone or protected:
                last[number] = {"type": "delete", "id": number}
                continue
            last[number] = {"type": "upsert", "id": number, "loc": SITE + path}
            last |= self._below(number, path)
            self.pages[number] = path
        return list(last.values())

    def _below(self, number: str, path: str) -> dict[str, dict[str, object]]:
        before = self.pages.get(number)
        if before is None or before == path or "?" in path or before == "/":
            return {}
        moved = {}
        for other, old in self.pages.items():
            if other != number and old.startswith(before):
                self.pages[other] = path + old.removeprefix(before)
                moved[other] = {"type": "upsert", "id": other, "loc": SITE + self.pages[other]}
        return moved


@pytest.mark.skipif(not CAPTURED.is_dir(), reason=f"no captured webhooks: {CAPTURED}")
@pytest.mark.parametrize("name", ["hooks-6.1.txt", "hooks-6.5.txt"])
def test_wordpress_lists_after_each_action_what_was_public(name: str) -> None:
    plugin, site, where, listed = Plugin(), Site(), config("wordpress"), {}
    earlier: set[str] = set()
    for number, (label, hooks) in enumerate(requests(name)):
        items = plugin.events(label, hooks)
        if label.startswith("35-"):
            # The structure of all permalinks changed: every page is somewhere else.
            plugin.pages = {
                n: re.sub(r"^/\d{4}/\d{2}/", "/", path) for n, path in plugin.pages.items()
            }
            earlier = {"8", "14", "20"}
            items = [
                {"type": "upsert", "id": n, "loc": SITE + plugin.pages[n]} for n in sorted(earlier)
            ]
        if items:
            hook = signed("wordpress", items, at=1_795_256_430 + number)
            site.take(*delivered(hook, where, 1_795_256_430 + number).events)
        listed[label] = {urlsplit(loc).path for loc in site.listed}

    assert {label: listed[label] for label in PUBLIC} == PUBLIC
    after = listed["36-options-discourage-search-engines"]
    assert {"/scheduled-post/", "/quick-edited/"} < after
    (nonlatin,) = after - {"/scheduled-post/", "/quick-edited/"}
    assert nonlatin.startswith("/%D0%BF%D1%80")
    if name == "hooks-6.1.txt":
        assert {label: listed[label] - after for label in LATER} == LATER


def test_every_address_that_is_no_page_becomes_a_delete_by_id() -> None:
    paths = ("/?p=4", "/?page_id=4", "/a/?preview=true", "/a/?x=1&preview_id=4", "/a__trashed/",
             "/parent__trashed/child/", "/a__trashed-2/")  # fmt: skip
    items = [{"type": "upsert", "id": 4, "loc": SITE + path} for path in paths]
    taken = delivered(signed("wordpress", items), config("wordpress"))

    assert said(taken.events) == [("delete", "4")] * len(paths)


def test_one_page_that_cannot_be_listed_keeps_no_other_out() -> None:
    items = [
        {"type": "upsert", "id": 1, "loc": SITE + "/a"},
        {"type": "upsert", "id": 2, "loc": "https://elsewhere.example/b"},
        {"type": "upsert", "id": 3, "loc": SITE + "/c", "lastmod": "yesterday"},
        {"type": "upsert", "loc": SITE + "/?p=5"},
        {"type": "sideways", "id": 6},
        "seven",
    ]
    taken = delivered(signed("wordpress", items), config("wordpress"))

    assert said(taken.events) == [("upsert", SITE + "/a"), ("delete", "2"), ("upsert", SITE + "/c")]
    assert len(taken.ignored) == 5
    assert json.dumps(taken.ignored).isascii()
