"""A changed configuration is in force whole, or not at all; what stays is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shared.config.live import LiveSettings, revision_of
from shared.config.settings import Settings
from tests.unit.configured import SITE


class Follower:
    """What a process has in force."""

    def __init__(self, path: Path) -> None:
        self.live, self.applied = LiveSettings(path), list[Settings]()

    def look(self) -> bool:
        return self.live.look(self.applied.append)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sitemapd.toml"
    path.write_text(SITE)
    return path


def replace(path: Path, text: str) -> None:
    new = path.with_name("new")
    new.write_text(text)
    new.rename(path)


def test_a_file_that_stays_is_not_read_again(file: Path) -> None:
    follower = Follower(file)

    assert not follower.look()
    assert not follower.applied


def test_a_replaced_file_is_in_force_at_the_next_look(file: Path) -> None:
    follower = Follower(file)
    replace(file, SITE + "rate = 7\n")

    assert follower.look()
    assert [each.sites["demo"].rate for each in follower.applied] == [7]
    assert follower.live.current.sites["demo"].rate == 7
    assert follower.live.revision == revision_of(file.read_bytes())
    assert not follower.look()


def test_a_file_that_is_being_written_is_read_when_it_rests(file: Path) -> None:
    follower = Follower(file)
    text = SITE + "rate = 7\n" + "# more\n" * 100
    with file.open("w") as written:
        for part in (text[:60], text[60:90], text[90:]):
            written.write(part)
            written.flush()
            assert not follower.look()
            assert follower.live.refused is None

    assert follower.look()
    assert len(follower.applied) == 1
    assert follower.live.current.sites["demo"].rate == 7


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (SITE + 'robots = "maybe"\n', "sites.demo.robots"), ("[", "not valid TOML"),
        ("", "no site is configured"), (SITE + "unknown = 1\n", "sites.demo.unknown"),
    ],
)  # fmt: skip
def test_an_invalid_file_changes_nothing_and_says_why(file: Path, text: str, fault: str) -> None:
    follower = Follower(file)
    before = follower.live.current, follower.live.revision
    replace(file, text)

    assert follower.look()
    assert not follower.applied
    assert (follower.live.current, follower.live.revision) == before
    assert follower.live.refused is not None
    assert fault in "; ".join(map(str, follower.live.refused.faults))
    assert not follower.look(), "it is told once"

    replace(file, SITE)
    assert follower.look()
    assert follower.live.refused is None
    assert not follower.applied, "nothing has changed for anybody"


def test_a_file_that_is_gone_is_a_fault_until_it_is_back(file: Path) -> None:
    follower = Follower(file)
    file.rename(file.with_name("away"))

    assert [follower.look(), follower.look()] == [False, True]
    assert follower.live.refused is not None
    file.with_name("away").rename(file)
    follower.look()
    assert follower.look() or follower.live.refused is None


def test_when_asked_the_file_is_read_whatever_it_looks_like(file: Path) -> None:
    follower, before = Follower(file), file.stat()
    file.write_text(SITE.replace("demo", "omed"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not follower.look()

    follower.live.ask()

    assert follower.look()
    assert list(follower.live.current.sites) == ["omed"]


def test_fields_of_the_start_stay_and_are_named(file: Path) -> None:
    follower = Follower(file)
    replace(file, f'redis_url = "redis://127.0.0.1:1/0"\nlog_level = "debug"\n{SITE}rate = 7\n')

    assert follower.look()
    current = follower.live.current
    assert (current.redis_url, current.log_level, current.sites["demo"].rate) == ("", "info", 7)
    assert follower.live.next_start == ("redis_url", "log_level")

    replace(file, SITE)
    assert follower.look()
    assert follower.live.next_start == ()


def test_a_change_that_cannot_be_applied_leaves_the_old_in_force(file: Path) -> None:
    live = LiveSettings(file)
    before = live.current
    replace(file, SITE + "rate = 7\n")

    def fail(_: Settings) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        live.look(fail)
    assert live.current is before
