"""Change lists of ResourceSync, read by the library of its editors."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from resync.capability_list import CapabilityList
from resync.change_list import ChangeList
from resync.source_description import SourceDescription

from shared.sitemap import change_list, fragments, w3c_dates
from shared.sitemap.change_list import LoggedChange, ResourceSyncFiles
from shared.sitemap.entry import Entry

BASE = "https://www.example.com/"
URLS = ResourceSyncFiles(*(BASE + name for name in change_list.NAMES), BASE)
TIMES = st.integers(0, 4_000_000_000)
PATHS = st.text("abc&<>'\"/?=%-._~;!()", max_size=20)
CHANGES = st.builds(
    LoggedChange,
    st.sampled_from(["created", "updated", "deleted"]),
    PATHS.map(BASE.__add__),
    st.just("") | TIMES.map(w3c_dates.from_epoch_s) | st.just("2026-11-21"),
    TIMES,
)


def fragment(path: str, lastmod: str | None = None) -> bytes:
    return fragments.render(Entry(BASE + path, lastmod))


@given(st.lists(CHANGES, max_size=8), TIMES)
def test_an_independent_reader_reads_every_change_as_it_was(
    listed: list[LoggedChange], since: int
) -> None:
    found = ChangeList()
    found.parse(fh=io.BytesIO(change_list.change_list(URLS, since, listed)))

    assert found.md["capability"] == "changelist"
    assert found.md_from == w3c_dates.from_epoch_s(since)
    assert found.up == URLS.capabilities
    assert [(each.change, each.uri, each.ts_datetime) for each in found] == [
        (each.kind, each.loc, each.at_s) for each in listed
    ]
    assert [each.lastmod for each in found if each.timestamp is not None] == [
        each.lastmod if len(each.lastmod) > 10 else f"{each.lastmod}T00:00:00Z"
        for each in listed
        if each.lastmod
    ]


def test_the_way_from_the_source_description_to_the_change_list_is_read() -> None:
    source, capabilities = SourceDescription(), CapabilityList()
    source.parse(fh=io.BytesIO(change_list.source_description(URLS)))
    capabilities.parse(fh=io.BytesIO(change_list.capability_list(URLS)))

    assert [each.uri for each in source] == [URLS.capabilities]
    assert capabilities.capability_info("changelist").uri == URLS.changes
    assert not capabilities.has_capability("resourcelist")
    assert capabilities.up == URLS.source


@given(CHANGES)
def test_a_change_is_stored_and_read_alike(change: LoggedChange) -> None:
    assert LoggedChange.unpack(f"{change.at_s} {change.pack()}".encode()) == change


@given(st.binary(max_size=60) | PATHS.map(lambda path: f"1 updated  {path}\n".encode()))
def test_what_was_not_stored_as_a_change_is_none(stored: bytes) -> None:
    change = LoggedChange.unpack(stored)

    if change is not None:
        etree.fromstring(change_list.change_list(URLS, 0, [change]))
        assert f"{change.at_s} {change.pack()}".encode() == stored.lstrip(b"0") or change.at_s == 0


@pytest.mark.parametrize(
    "stored",
    [b"", b"x", b"1 moved  https://a/", b"1 deleted 2026 https://a/", b"1 deleted  a b",
     b"99999999999999 deleted  a", b"1 deleted  \xff", b"1 deleted  a\n"],
)  # fmt: skip
def test_damaged_changes_are_none(stored: bytes) -> None:
    assert LoggedChange.unpack(stored) is None


def test_the_lines_of_a_publish_say_what_became_of_each_page() -> None:
    new, old = fragment("a", "2026-11-21"), fragment("a", "2026-11-20")

    found = change_list.changes([
        (None, fragment("new")), (old, new), (fragment("gone"), None),
        (fragment("moved"), None), (None, fragment("moved")),
        (None, fragment("both", "2026-01-02")), (fragment("both", "2026-01-01"), None),
    ])  # fmt: skip

    assert [*found.values()] == [
        LoggedChange("created", f"{BASE}new"),
        LoggedChange("updated", f"{BASE}a", "2026-11-21"),
        LoggedChange("deleted", f"{BASE}gone"),
        LoggedChange("updated", f"{BASE}both", "2026-01-02"),
    ]


@given(st.binary(max_size=300))
def test_only_files_of_ours_are_ours(content: bytes) -> None:
    whole = change_list.capability_list(URLS)

    assert all(change_list.is_ours(whole[:n]) for n in range(1, len(whole)))
    assert not change_list.is_ours(b"")
    assert change_list.is_ours(content) == (bool(content) and whole.startswith(content[:20]))
