"""Verify finds every difference, rebuild heals just that, and no other state ever overwrites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis

from shared.errors import PublishError
from shared.sitemap import shards
from tests.integration.rig import BASE, Rig, restore_keys, stored_keys


def page(name: object, kind: str = "upsert", **members: Any) -> dict[str, Any]:
    return {"type": kind, "loc": f"{BASE}{name}"} | members


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "public"
    root.mkdir()
    (root / "robots.txt").write_text("User-agent: *\nDisallow:\n")
    return root


@pytest.fixture
def rig(store: redis.Redis, root: Path) -> Rig:
    """A site of ten pages in four files and two indexes, quiet."""
    rig = Rig(store, root, robots="edit", shard_urls=3, index_shards=2)
    rig.do(*(page(number) for number in range(10)))
    rig.check()
    return rig


def differences(rig: Rig) -> dict[str, str]:
    return {found.name: found.what for found in rig.audit().verify()}


def hurt(root: Path) -> None:
    """One of each kind of difference, and one in robots.txt."""
    (root / "pages-2.xml").unlink()
    (root / "pages-3.xml").write_bytes((root / "pages-3.xml").read_bytes().replace(b"/6", b"/7"))
    (root / "sitemap-2.xml").write_bytes(b"")
    (root / "pages-99.xml").write_bytes(b"<urlset/>")
    (root / "sitemap-9.xml").write_bytes(b"<sitemapindex/>")
    robots = root / "robots.txt"
    robots.write_text(robots.read_text().replace("sitemap.xml", "elsewhere.xml"))


HURT = {
    "pages-2.xml": "missing", "pages-3.xml": "differs", "sitemap-2.xml": "differs",
    "pages-99.xml": "unexpected", "sitemap-9.xml": "unexpected", "robots.txt": "differs",
}  # fmt: skip


def test_verify_finds_missing_differing_and_unexpected_files(rig: Rig, root: Path) -> None:
    """RELIABILITY F23."""
    assert differences(rig) == {}

    hurt(root)

    assert differences(rig) == HURT


def test_verify_minds_no_file_that_is_not_ours(rig: Rig, root: Path) -> None:
    for name in ("index.html", "products-1.xml", "pages.xml", "pages-1.xml.bak", "pages-x.xml"):
        (root / name).write_bytes(b"theirs")

    assert differences(rig) == {}
    assert rig.audit().rebuild() == []


def test_rebuild_heals_byte_for_byte_and_touches_nothing_else(rig: Rig, root: Path) -> None:
    (root / "index.html").write_bytes(b"<!doctype html>\n")
    before, index = rig.shard_files(), rig.index()
    robots = (root / "robots.txt").read_bytes()
    hurt(root)
    whole = {"pages-1.xml", "pages-4.xml", "index.html"}
    times = {name: (root / name).stat().st_mtime_ns for name in whole}

    touched = rig.audit().rebuild()

    # Both indexes list a file that is newer now (PROTOCOL M7), and say so of this one alone.
    assert set(touched) == HURT.keys() | {"sitemap.xml"}
    assert rig.shard_files() == before
    healed = {BASE + name for name in ("pages-2.xml", "pages-3.xml")}
    for name, lines in rig.index().items():
        assert list(lines) == list(index[name])
        assert {url for url, at in lines.items() if at != index[name][url]} <= healed
    assert (root / "robots.txt").read_bytes() == robots
    assert {name: (root / name).stat().st_mtime_ns for name in whole} == times
    assert differences(rig) == {}
    assert rig.audit().rebuild() == []
    (root / "index.html").unlink()
    rig.check()


def test_rebuild_publishes_what_waits_as_well(rig: Rig) -> None:
    rig.send(page(1, lastmod="2026-01-01"), page(5, "delete"), page("new"))
    rig.pump().apply_all()
    assert rig.state.dirty()
    assert differences(rig) == {}, "what waits is no difference"

    rig.audit().rebuild()

    assert rig.quiet()
    assert rig.listed()[f"{BASE}1"] == "2026-01-01"
    rig.check()


def test_another_form_takes_over_by_rebuild_and_leaves_only_its_own_names(
    rig: Rig, root: Path
) -> None:
    contents = rig.shard_files()
    for form in ("xml.gz", "encoded", "xml"):
        other = Rig(
            rig.client, root, robots="edit", shard_urls=3, index_shards=2, form=form, retire_hours=0
        )

        other.audit().rebuild()

        listed = [shards.file_name(shard, form) for shard in other.state.files(["pages"])]
        on_disk = {shards.on_disk(name, form) for name in listed}
        assert on_disk | {"sitemap.xml", "sitemap-2.xml"} == other.files().keys()
        named = [url for lines in other.index().values() for url in lines]
        assert sorted(named) == [BASE + name for name in listed]
        assert other.shard_files() == contents
        other.check()


def test_rebuild_heals_a_change_of_index_shards(rig: Rig, root: Path) -> None:
    """Publishing alone leaves a shard's old line where it was."""
    for index_shards in (1, 3, 2):
        other = Rig(
            rig.client, root, robots="edit", shard_urls=3, index_shards=index_shards, retire_hours=0
        )
        other.do(page(0, lastmod=f"2026-01-0{index_shards}"))

        other.audit().rebuild()

        other.check()
        assert len(other.index()) == -(-4 // index_shards)
        assert other.audit().rebuild() == []


def test_rebuild_names_a_shard_that_cannot_be_written_and_does_the_others(
    rig: Rig, root: Path
) -> None:
    key = rig.keys.blocks(shards.Shard("pages", 2))
    stored = rig.client.hget(key, "0")
    assert isinstance(stored, bytes)
    rig.client.hset(key, "0", stored[:-3] + b"xxx")
    before = rig.files()["pages-3.xml"].content
    (root / "pages-2.xml").write_bytes(b"spoilt")
    (root / "pages-3.xml").write_bytes(b"spoilt")

    with pytest.raises(PublishError, match=r"pages/2: a block is damaged.* Restore the Redis data"):
        rig.audit().rebuild()

    assert rig.files()["pages-3.xml"].content == before


def refusal(rig: Rig) -> str:
    with pytest.raises(PublishError) as refused:
        rig.audit().publisher.publish()
    return str(refused.value)


def test_an_emptied_redis_never_overwrites_the_files_of_a_fuller_one(rig: Rig, root: Path) -> None:
    """RELIABILITY F22."""
    before, robots = rig.files(), (root / "robots.txt").read_bytes()
    rig.client.flushall()
    rig.send(page("after"))
    rig.pump().run()

    said = refusal(rig)

    assert rig.files() == before
    assert (root / "robots.txt").read_bytes() == robots
    assert "sitemapd rebuild --site demo --adopt" in said
    assert "import the pages again" in said
    assert rig.state.dirty(), "the work stays queued"


def test_an_older_copy_of_the_redis_data_never_overwrites_newer_files(rig: Rig) -> None:
    """RELIABILITY F22: as if an hour-old backup had been restored."""
    backup = stored_keys(rig.client, "{demo}*")
    rig.do(page(3, lastmod="2026-01-01"), page("new"))
    newer = rig.files()
    restore_keys(rig.client, backup)
    rig.send(page("after"))
    rig.pump().run()

    said = refusal(rig)

    assert rig.files() == newer
    assert "Restore the newer Redis data" in said


def test_a_state_that_adopts_the_files_of_another_replaces_them(rig: Rig) -> None:
    rig.client.flushall()
    rig.send(page("after"))
    rig.pump().run()
    assert len(rig.listed()) == 10
    audit = rig.audit()

    audit.publisher.adopt()
    audit.rebuild()

    assert list(rig.listed()) == [f"{BASE}after"]
    rig.check()


def test_a_lost_marker_is_written_anew_and_every_file_put_back(rig: Rig, root: Path) -> None:
    before = rig.files()
    (root / ".sitemapd").write_bytes(b"[torn")
    (root / "pages-2.xml").unlink()

    rig.do(page(0, lastmod="2026-01-01"))

    assert rig.files()["pages-2.xml"].content == before["pages-2.xml"].content
    rig.check()


def test_rebuild_gives_up_where_another_publisher_keeps_the_lease(rig: Rig) -> None:
    assert rig.lease.take("w2:somebody")
    audit = rig.audit()

    assert audit.publisher.publish(again=list(rig.state.shards(["pages"]))) is None

    rig.lease.release("w2:somebody")
    assert audit.rebuild() == []
