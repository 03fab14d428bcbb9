"""Ghost's Content API, over real HTTP, with what goes wrong on the way."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from shared.errors import SourceError
from tests.unit.worker.sources.cms import Asked, Ghost, Reply, served
from worker.sources import Item, RecordRefusal, SourceOptions, SourceRecord, public, read

KEY = "22444f78447824223cefc48062"
SITE = "https://blog.example.com/"


@pytest.fixture
def ghost() -> Ghost:
    return Ghost(KEY)


@pytest.fixture
def url(ghost: Ghost) -> Iterator[str]:
    with served(ghost) as address:
        yield address


def row(path: str, **members: Any) -> dict[str, Any]:
    return {"id": path, "url": f"{SITE}{path}/", "updated_at": "2026-05-01T10:00:00.000+00:00"} | (
        members
    )


def pages(url: str, key: str = KEY) -> list[Item]:
    return list(read(f"ghost:{url}", SourceOptions(key)))


def locs(items: list[Item]) -> list[str]:
    return [item.loc.removeprefix(SITE) for item in items if isinstance(item, SourceRecord)]


def test_posts_pages_tags_authors_and_the_home_page_are_read(ghost: Ghost, url: str) -> None:
    for name, rows in ghost.rows.items():
        rows.append(row(name))

    items = pages(url)

    assert locs(items) == [f"{url}/", "posts/", "pages/", "tags/", "authors/"]
    post, author = items[1], items[4]
    assert isinstance(post, SourceRecord)
    assert isinstance(author, SourceRecord)
    assert post.lastmod == "2026-05-01T10:00:00.000+00:00"
    assert post.extra == {"section": "posts"}
    assert "lastmod" not in post.silent
    assert "lastmod" in author.silent


@pytest.mark.parametrize("count", [100, 101, 250])
def test_all_pages_of_a_collection_are_read(ghost: Ghost, url: str, count: int) -> None:
    ghost.rows["posts"] = [row(f"p{n}") for n in range(count)]

    assert len(set(locs(pages(url))[1:])) == count


def test_what_is_not_to_be_listed_is_refused_by_name(ghost: Ghost, url: str) -> None:
    ghost.rows["posts"] = [
        row("a", canonical_url="https://elsewhere.example/a"), row("b", canonical_url=""),
        row("404"), row("members", visibility="members"),
    ]  # fmt: skip
    ghost.rows["tags"] = [row("hash-x", visibility="internal"), row("news", visibility="public")]

    found = pages(url)

    assert locs(found)[1:] == ["b/", "members/", "news/"]
    said = [(item.where, item.rule) for item in found if isinstance(item, RecordRefusal)]
    assert said == [("posts#a", "L8"), ("posts#404", "L8"), ("tags#hash-x", "L8")]


def test_a_deletion_meanwhile_is_noticed(ghost: Ghost, url: str) -> None:
    ghost.rows["posts"] = [row(f"p{n}") for n in range(250)]

    def delete(asked: Asked) -> None:
        if asked.parameters.get("page") == "2" and len(ghost.rows["posts"]) == 250:
            del ghost.rows["posts"][:5]

    ghost.instead = delete

    (lost,) = [item for item in pages(url) if isinstance(item, RecordRefusal)]
    assert lost.whole
    assert "245 of 250" in lost.detail


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"oops", 500),
        Reply(b'{"posts": [{"id": "1"'),
        Reply(b"{}", length=99),
        Reply({"posts": []}),
        Reply({"posts": [1], "meta": {"pagination": {"total": 1, "next": None}}}),
        Reply({"posts": [], "meta": {"pagination": {"total": 9, "next": 2}}}),
        Reply({"posts": [], "meta": {"pagination": {"total": "9", "next": None}}}),
        Reply([]),
    ],
)
def test_an_answer_that_is_not_whole_is_an_error_and_no_shorter_list(
    ghost: Ghost, url: str, reply: Reply
) -> None:
    ghost.instead = lambda _: reply

    with pytest.raises(SourceError):
        pages(url)


def told(url: str, key: str) -> str:
    with pytest.raises(SourceError) as caught:
        pages(url, key)
    return "".join(traceback.format_exception(caught.value))


def test_a_wrong_key_is_said_and_never_shown(ghost: Ghost, url: str) -> None:
    """RELIABILITY T30."""
    wrong = "canary-key"

    assert "401" in told(url, wrong)
    assert wrong not in told(url, wrong)
    assert wrong not in told("http://127.0.0.1:1", wrong)
    ghost.instead = lambda _: Reply(b"", 302, {"Location": f"http://other.example/?key={KEY}"})
    assert KEY not in told(url, KEY)
    assert KEY not in public(f"ghost:{url}/?key={KEY}")


def test_without_a_key_nothing_is_asked(url: str) -> None:
    with pytest.raises(SourceError, match="key of its Content API"):
        pages(url, "")
