"""All further outputs through random histories and crashes: what each lists is what is listed."""

from __future__ import annotations

import gzip
import io
import random
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import redis
from lxml import html
from resync.change_list import ChangeList

from shared.sitemap import html_writer
from tests.integration.faults import CutError, Files, Fuse
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig

OPTIONS: dict[str, Any] = {
    "outputs": {
        "gzip_index": True, "change_list": True, "llms": True, "llms_entries": 10_000, "html": True,
        "hosts": ["elsewhere"],
    },
    "shard_urls": 6, "block_urls": 2, "shrink_least": 1_000, "sections": {"posts": {}, "docs": {}},
    "robots": "create",
}  # fmt: skip


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public", **OPTIONS)


def followed(rig: Rig) -> set[str]:
    """The pages that a client has which followed the change list from its beginning."""
    listed, pages = ChangeList(), set[str]()
    listed.parse(fh=io.BytesIO((rig.root / "changelist.xml").read_bytes()))
    for change in listed:
        if change.change == "deleted":
            pages.discard(change.uri)
        else:
            pages.add(change.uri)
    return pages


def linked(rig: Rig) -> dict[str, str]:
    """The pages that visitors find, with the text of their links."""
    return {
        link.get("href"): link.text
        for path in rig.root.iterdir()
        if html_writer.parse_name(path.name)
        for link in html.fromstring(path.read_bytes()).iter("a")
        if link.get("href").startswith(BASE)
    }


def check(rig: Rig, titles: dict[str, str]) -> None:
    """Every output tells of the pages in `titles`, and of no other."""
    rig.check()
    assert rig.listed().keys() == titles.keys()
    assert followed(rig) == titles.keys()
    assert linked(rig) == {loc: title or html_writer.readable(loc) for loc, title in titles.items()}
    index, of_hosts = (rig.root / name for name in ("sitemap.xml.gz", "sitemap-hosts.xml"))
    assert of_hosts.read_bytes() == gzip.decompress(index.read_bytes())
    llms = rig.root / "llms.txt"
    text = llms.read_text() if llms.exists() else ""
    assert {line for line in text.split("\n") if line.startswith("- ")} == {
        f"- [{title}]({loc})" for loc, title in titles.items() if title
    }


class History:
    """Random events, and the title of each page that is listed after them."""

    def __init__(self, seed: int) -> None:
        self._random, self.titles = random.Random(seed), dict[str, str]()
        self._dates = count(1)

    def events(self, most: int) -> list[dict[str, Any]]:
        return [self._event() for _ in range(self._random.randint(1, most))]

    def _event(self) -> dict[str, Any]:
        loc = f"{BASE}{self._random.randint(0, 25)}"
        if self._random.random() < 0.3:
            self.titles.pop(loc, None)
            return {"type": "delete", "loc": loc}
        title = self._random.choice(["", "One", "Two"])
        self.titles[loc] = title
        event = {"type": "upsert", "loc": loc, "section": self._random.choice(["posts", "docs"])}
        if self._random.random() < 0.5:
            event["lastmod"] = f"2026-01-{next(self._dates) % 28 + 1:02}"
        return event | ({"title": title} if title else {})


@pytest.mark.parametrize("seed", range(6))
def test_every_output_lists_what_is_listed(rig: Rig, seed: int) -> None:
    history = History(seed)
    rig.do({"type": "upsert", "loc": f"{BASE}always"})
    history.titles[f"{BASE}always"] = ""
    for _ in range(12):
        rig.do(*history.events(8))
        check(rig, history.titles)


def test_wherever_a_publish_is_cut_off_every_output_is_right_after_the_next(rig: Rig) -> None:
    """Cut off before every operation on files, one after another."""
    history = History(99)
    rig.do({"type": "upsert", "loc": f"{BASE}always", "title": "Always"})
    history.titles[f"{BASE}always"] = "Always"
    for step in count():
        rig.send(*history.events(4))
        Files.fuse = fuse = Fuse(files=step)
        try:
            with silence():
                rig.pump().run()
        except CutError:
            pass
        finally:
            Files.fuse = None
        rig.settle()
        check(rig, history.titles)
        if not fuse.burnt and step > 40:
            break
    assert step > 20
