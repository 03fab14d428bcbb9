"""Index files and robots.txt as others see them, at any moment: PROTOCOL O2, N4, M7, R1 to R11."""

from __future__ import annotations

import os
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis

from shared.sitemap import w3c_dates
from tests.integration.faults import CutError, Files, Fuse
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig, as_written

NAMED = re.compile(rb"(?:<sitemap><loc>|Sitemap: )%b([^<\n]+)" % BASE.encode())
WHOLE = (b"</url>\n</urlset>\n", b"</sitemap>\n</sitemapindex>\n")
RULES = b"\xef\xbb\xbfUser-agent: *\r\nDisallow: /private\n\n# kept as it is: \xc3\xa9\n"


def page(name: object, kind: str = "upsert", **members: Any) -> dict[str, Any]:
    return {"type": kind, "loc": f"{BASE}{name}"} | members


class Seen(NamedTuple):
    """A file as it was read, and which one it was."""

    content: bytes
    which: tuple[int, int]


class Reader:
    """A crawler: what it saw that nobody ever may see."""

    def __init__(self, root: Path) -> None:
        self.followed = 0
        self.torn, self.missing = list[str](), list[str]()
        self._root, self._stop = root, threading.Event()

    def look(self) -> None:
        """Begin where crawlers do and follow every name."""
        robots = self._read("robots.txt")
        for index_name in NAMED.findall(robots.content) if robots else ():
            index = self._follow("robots.txt", robots, index_name.decode())
            for name in NAMED.findall(index.content) if index else ():
                self._follow(index_name.decode(), index, name.decode())

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look all the time, in a thread."""
        thread = threading.Thread(target=self._look_for_ever)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _look_for_ever(self) -> None:
        while not self._stop.is_set():
            self.look()

    def _follow(self, parent_name: str, parent: Seen, name: str) -> Seen | None:
        self.followed += 1
        file = self._read(name)
        if file is None:
            # It may have been named no more since: a fault only if what named it still stands.
            now = self._read(parent_name)
            if now is not None and now.which == parent.which:
                self.missing.append(name)
        elif not file.content.endswith(WHOLE):
            self.torn.append(name)
        return file

    def _read(self, name: str) -> Seen | None:
        try:
            with (self._root / name).open("rb") as file:
                status = os.fstat(file.fileno())
                return Seen(file.read(), (status.st_ino, status.st_mtime_ns))
        except FileNotFoundError:
            return None


def test_no_reader_sees_a_torn_file_or_an_index_that_names_a_missing_one(
    store: redis.Redis, tmp_path: Path
) -> None:
    """A site of 30 pages in files of 3, that grows to the full and shrinks to nothing 8 times."""
    rig = Rig(store, tmp_path, shard_urls=3, index_shards=4, robots="create")
    chance, pump, reader, publishes = random.Random(7), rig.pump(), Reader(tmp_path), 0

    with reader.looking(), silence():
        for _ in range(8):
            for kind in ("upsert", "delete"):
                names = chance.sample(range(30), 30)
                for at in range(0, 30, 2):
                    rig.send(*(page(name, kind) for name in names[at : at + 2]))
                    pump.run()
                    publishes += 1

    print(f"{publishes} publishes, {reader.followed} named files read")
    assert (reader.torn, reader.missing) == ([], [])
    assert (publishes, rig.files()) == (240, {})
    assert reader.followed > 10 * publishes
    rig.check()


def test_wherever_a_publish_is_cut_off_every_file_that_is_named_is_there(
    store: redis.Redis, tmp_path: Path
) -> None:
    """One file leaves and one comes; cut off before every operation on files, one after another."""
    rig = Rig(store, tmp_path, shard_urls=1, index_shards=2, robots="create")
    rig.do(page(0), page(1))
    for step in count():
        rig.send(page(step, "delete"), page(step + 2))
        Files.fuse = fuse = Fuse(files=step)
        try:
            with silence():
                rig.pump().run()
        except CutError:
            pass
        finally:
            Files.fuse = None
        reader = Reader(tmp_path)
        reader.look()
        assert (reader.torn, reader.missing) == ([], []), f"cut off after {step} steps"
        rig.settle()
        rig.check()
        if not fuse.burnt:
            break
    assert step > 10


def test_a_site_that_loses_its_last_page_has_no_files_and_may_come_back(
    store: redis.Redis, tmp_path: Path
) -> None:
    (tmp_path / "robots.txt").write_bytes(RULES)
    rig = Rig(store, tmp_path, robots="create")
    rig.do(page(1), page(2))

    rig.do(page(1, "delete"), page(2, "delete"))

    assert rig.files() == {}
    assert (tmp_path / "robots.txt").read_bytes() == RULES
    rig.check()
    rig.do(page(3))
    assert list(rig.listed()) == [BASE + "3"]
    rig.check()


@pytest.mark.parametrize(
    ("mode", "before", "edited"),
    [
        ("off", None, False),
        ("off", RULES, False),
        ("edit", None, False),
        ("edit", RULES, True),
        ("create", None, True),
        ("create", RULES, True),
    ],
)
def test_robots_is_edited_or_created_as_configured(
    store: redis.Redis, tmp_path: Path, mode: str, before: bytes | None, edited: bool
) -> None:
    robots = tmp_path / "robots.txt"
    if before is not None:
        robots.write_bytes(before)
    rig = Rig(store, tmp_path, robots=mode)

    rig.do(page(1))

    ours = f"# BEGIN sitemapd\nSitemap: {BASE}sitemap.xml\n# END sitemapd\n".encode()
    expected = (before or b"") + ours if edited else before
    assert (robots.read_bytes() if robots.exists() else None) == expected
    rig.check()


@pytest.mark.parametrize("content", [RULES, RULES[:-1], RULES.replace(b"\n", b"\r\n"), b""])
def test_nothing_outside_our_markers_in_robots_ever_changes(
    store: redis.Redis, tmp_path: Path, content: bytes
) -> None:
    """While index files come and go, and whether the last line is ended or not."""
    robots = tmp_path / "robots.txt"
    robots.write_bytes(content)
    rig = Rig(store, tmp_path, robots="edit", shard_urls=1, index_shards=1)

    for kind in ("upsert", "delete"):
        for name in range(3):
            rig.do(page(name, kind))
            named = len(rig.index())
            text = robots.read_bytes()
            assert text.startswith(content)
            added = text.removeprefix(content).splitlines()
            assert all(line[:1] in (b"", b"#") or line[:8] == b"Sitemap:" for line in added)
            assert text.count(b"\nSitemap: ") == named

    assert robots.read_bytes() == content


@pytest.mark.parametrize("fault", ["link", "not UTF-8", "too large"])
def test_a_robots_that_cannot_be_edited_safely_is_left_alone_and_holds_nothing_up(
    store: redis.Redis, tmp_path: Path, fault: str
) -> None:
    contents = {"link": RULES, "not UTF-8": b"# \xe9\n", "too large": b"# x\n" * 128 * 1024}
    root = tmp_path / "public"
    root.mkdir()
    robots = root / "robots.txt"
    place = tmp_path / "elsewhere" if fault == "link" else robots
    place.write_bytes(contents[fault])
    if fault == "link":
        robots.symlink_to(place)
    rig = Rig(store, root, robots="edit")

    rig.do(page(1))

    assert list(rig.listed()) == [BASE + "1"]
    assert place.read_bytes() == contents[fault]
    assert robots.is_symlink() == (fault == "link")
    assert not list(rig.audit().verify())


def test_lastmod_in_the_index_moves_just_when_the_bytes_of_the_file_do(
    store: redis.Redis, tmp_path: Path
) -> None:
    """PROTOCOL M7: it is the time of the file, and moves on deletes too, never on no-ops."""
    rig = Rig(store, tmp_path, shard_urls=4, index_shards=2)
    chance = random.Random(3)
    contents, lastmods = dict[str, bytes](), dict[str, str]()
    for _ in range(60):
        kind = chance.choice(("upsert", "upsert", "delete"))
        date = f"2026-01-0{chance.randint(1, 2)}"
        lastmod = {"lastmod": date} if kind == "upsert" else {}
        rig.do(page(chance.randrange(20), kind, **lastmod))
        files, listed = rig.files(), {}
        for lines in rig.index().values():
            for url, noted in lines.items():
                name = url.removeprefix(BASE)
                listed[name] = noted
                assert noted == w3c_dates.from_epoch_s(files[name].mtime_ns // 10**9)
                if name in contents:
                    assert (files[name].content == contents[name]) == (noted == lastmods[name])
        contents = {name: files[name].content for name in listed}
        lastmods = listed
    assert len(lastmods) > 3


def test_ordinary_publishes_leave_robots_untouched(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path, robots="create", shard_urls=2)
    rig.do(page(0))
    before = as_written(tmp_path / "robots.txt")

    for number in range(10):
        rig.do(page(number, lastmod="2026-01-01"))

    assert before == as_written(tmp_path / "robots.txt")
