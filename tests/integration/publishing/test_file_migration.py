"""Settings that change names or bytes of files: written anew by itself, old names go in time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import redis

from deploy.doctor import root as root_checks
from deploy.doctor.runner import Case
from shared.sitemap.shards import Shard
from shared.store.publishing.publish_batch import PASS_SHARDS
from tests.integration.rig import BASE, Rig
from worker.publishing.targets.web_root_watch import WebRootWatch

OTHER = "https://other.example.com/"


def upsert(n: int, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": f"p/{n}", **members}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "public"


OPTIONS: dict[str, Any] = {"shard_urls": 2, "robots": "create", "retire_hours": 24}


@pytest.fixture
def rig(store: redis.Redis, root: Path) -> Rig:
    """40 files."""
    rig = Rig(store, root, **OPTIONS)
    rig.do(*map(upsert, range(80)))
    look(rig)
    return rig


def changed(rig: Rig, **options: Any) -> Rig:
    return Rig(rig.client, rig.root, **(OPTIONS | options))


def look(rig: Rig) -> None:
    """As a worker does at its start and every few seconds after."""
    WebRootWatch(rig.client, rig.name, rig.site, "w1").look()


def shard_names(suffix: str, count: int = 40) -> set[str]:
    return {f"pages-{n}{suffix}" for n in range(1, count + 1)}


def on_disk(rig: Rig) -> set[str]:
    return {path.name for path in rig.root.glob("pages-*")}


def let_time_pass(rig: Rig) -> None:
    for name in rig.client.zrange(rig.keys.retired, 0, -1):
        rig.client.zadd(rig.keys.retired, {name: time.time() - 1})


@pytest.mark.parametrize(
    ("form", "suffix", "by_event"),
    [
        ("xml.gz", ".xml.gz", False),
        ("xml.gz", ".xml.gz", True),
        ("txt", ".txt", False),
        ("txt.gz", ".txt.gz", False),
    ],
)
def test_another_form_is_written_at_the_start_and_old_files_go_after_their_time(
    rig: Rig, form: str, suffix: str, by_event: bool
) -> None:
    (rig.root / "pages-99.xml").write_bytes(b"theirs")
    other = changed(rig, form=form)

    if by_event:
        other.send(upsert(1, lastmod="2026-01-01"))
    else:
        look(other)
    other.settle()

    both = shard_names(".xml") | shard_names(suffix) | {"pages-99.xml"}
    assert on_disk(other) == both, "a crawler may have read the old index"
    listed = {url for lines in other.index().values() for url in lines}
    assert listed == {f"{BASE}pages-{n}{suffix}" for n in range(1, 41)}
    assert [found.name for found in other.audit().verify()] == ["pages-99.xml"]
    look(changed(rig, form=form))
    assert on_disk(other) == both, "also after a restart"
    let_time_pass(other)
    look(other)
    assert on_disk(other) == shard_names(suffix) | {"pages-99.xml"}
    assert (rig.root / "pages-99.xml").read_bytes() == b"theirs"


def test_a_record_from_before_a_setting_existed_rewrites_nothing(rig: Rig) -> None:
    before = rig.files()
    rig.client.hdel(rig.keys.shape, "html")

    other = changed(rig)
    look(other)
    other.settle()

    assert other.files() == before
    assert rig.client.hget(rig.keys.shape, "html") == b"False"


def test_going_back_within_the_time_keeps_the_files_that_are_named_again(rig: Rig) -> None:
    other = changed(rig, form="xml.gz")
    look(other)
    other.settle()

    look(rig)
    rig.settle()
    let_time_pass(rig)
    look(rig)

    assert on_disk(rig) == shard_names(".xml")
    assert not list(rig.audit().verify())


@pytest.mark.parametrize("restarted", [False, True])
def test_a_plain_file_never_hides_the_encoded_one_of_the_same_address(
    store: redis.Redis, root: Path, restarted: bool
) -> None:
    """A web server sends the plain file where there is one: it would be of yesterday."""
    rig, count = Rig(store, root, **OPTIONS), 2 * PASS_SHARDS + 8
    rig.do(*map(upsert, range(2 * count)))
    look(rig)
    other = changed(rig, form="encoded")
    look(other)
    pump = other.pump()

    pump.publisher.publish()
    (other.pump() if restarted else pump).publisher.publish()

    encoded = {name.removesuffix(".gz") for name in on_disk(other) if name.endswith(".gz")}
    assert len(encoded) == 2 * PASS_SHARDS
    assert not encoded & on_disk(other)
    assert len(on_disk(other)) == count, "what is not written yet is there as it was"
    other.settle()
    assert on_disk(other) == shard_names(".xml.gz", count)
    other.check()


def test_no_file_goes_while_an_index_still_names_it(rig: Rig) -> None:
    other = changed(rig, form="xml.gz", retire_hours=0)
    look(other)
    look(other)
    assert shard_names(".xml") <= on_disk(other), "nothing was published yet"

    other.pump().publisher.publish()
    look(other)

    named = {url.removeprefix(BASE) for lines in other.index().values() for url in lines}
    assert named == on_disk(other)


@pytest.mark.parametrize("by_event", [True, False])
def test_another_address_reaches_every_line_of_the_index_at_once(rig: Rig, by_event: bool) -> None:
    other = changed(rig, base_url=OTHER)
    assert {found.name for found in other.audit().verify()} == {"sitemap.xml", "robots.txt"}

    if by_event:
        other.send({"type": "upsert", "loc": OTHER + "new"})
        other.pump().apply_all()
    else:
        look(other)
    other.pump().publisher.publish()

    hosts = {url.partition("pages")[0] for lines in other.index().values() for url in lines}
    assert hosts == {OTHER}
    other.settle()
    assert not list(other.audit().verify())
    assert f"Sitemap: {OTHER}sitemap.xml" in (rig.root / "robots.txt").read_text()
    assert BASE not in (rig.root / "robots.txt").read_text()


@pytest.mark.parametrize(
    ("options", "written"),
    [
        ({"viewer": False}, shard_names),
        ({"index_shards": 30}, lambda _end: {"sitemap-2.xml"}),
        ({"robots": "edit", "feed": True}, lambda _end: set()),
    ],
)
def test_a_setting_that_shapes_files_needs_no_event_and_no_rebuild(
    rig: Rig, options: dict[str, Any], written: Any
) -> None:
    before = rig.files()
    other = changed(rig, **options)

    look(other)
    other.settle()

    assert not list(other.audit().verify())
    after = other.files()
    assert written(".xml") <= {name for name in after if after[name] != before.get(name)}
    assert other.audit().rebuild() == []


def test_the_same_settings_at_a_restart_write_nothing(rig: Rig) -> None:
    before = rig.files()

    look(changed(rig))

    assert rig.quiet()
    assert rig.files() == before
    assert not rig.client.exists(rig.keys.retired)


def test_an_index_that_is_switched_off_goes_after_its_time(rig: Rig) -> None:
    other = changed(rig, index=False)

    look(other)
    other.settle()

    assert (rig.root / "sitemap.xml").exists()
    assert (rig.root / "robots.txt").read_text().count("Sitemap:") == 40
    let_time_pass(other)
    look(other)
    assert not (rig.root / "sitemap.xml").exists()
    assert not list(other.audit().verify())


def test_a_change_that_was_cut_off_is_taken_up_again(rig: Rig) -> None:
    shape = rig.client.dump(rig.keys.shape)
    other = changed(rig, form="xml.gz")
    look(other)
    other.pump().publisher.publish()
    rig.client.delete(rig.keys.shape, rig.keys.dirty)
    rig.client.restore(rig.keys.shape, 0, shape)  # type: ignore[arg-type]

    look(other)
    other.settle()

    listed = {url for lines in other.index().values() for url in lines}
    assert listed == {f"{BASE}pages-{n}.xml.gz" for n in range(1, 41)}
    assert not list(other.audit().verify())
    assert Shard("pages", 40) in other.state.files(["pages"])


def test_doctor_tells_what_does_not_fit_the_settings_of_today(rig: Rig) -> None:
    def said(**options: Any) -> tuple[str, str]:
        site = changed(rig, **options)
        case = Case(site.settings, site.name, site.site, site.client, "")
        (check,) = [each for each in root_checks.CHECKS if each.name == "settings"]
        found = check.look(case)
        return found.status, found.detail

    assert said()[0] == "ok"
    assert said(form="xml.gz") == ("fail", "the files were written with other settings: form")
    other = changed(rig, base_url=OTHER)
    look(other)
    other.settle()
    assert said(base_url=OTHER) == (
        "warn", f"pages outside base_url are still listed, e.g. {BASE}p/0",
    )  # fmt: skip


def test_doctor_names_sections_that_are_configured_no_more(store: redis.Redis, root: Path) -> None:
    rig = Rig(store, root, sections={"posts": {}})
    rig.do(upsert(1, section="posts"), upsert(2))
    look(rig)
    without = Rig(store, root)
    look(without)
    case = Case(without.settings, "demo", without.site, store, "")
    (check,) = [each for each in root_checks.CHECKS if each.name == "settings"]

    found = check.look(case)

    assert (found.status, "posts" in found.detail) == ("warn", True)
    without.do(upsert(1, section="pages"))
    assert not (root / "posts-1.xml").exists()
