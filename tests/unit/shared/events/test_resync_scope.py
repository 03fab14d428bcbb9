"""What a resync or a reconcile is about, and what answers what."""

from __future__ import annotations

import pytest

from shared.events.resync_scope import WHOLE, Scope

POSTS, SHOP = Scope(section="posts"), Scope(section="shop")
BLOG, YEAR = Scope(prefix="https://a.example/blog/"), Scope(prefix="https://a.example/blog/2026")
ALL = [WHOLE, POSTS, SHOP, BLOG, YEAR]
NOWHERE: frozenset[str] = frozenset()


@pytest.mark.parametrize("scope", ALL, ids=str)
def test_a_scope_is_read_as_it_is_written(scope: Scope) -> None:
    assert Scope.of(str(scope)) == scope


def test_a_scope_means_the_pages_it_says() -> None:
    page = "https://a.example/blog/2025/x"

    assert WHOLE.holds(page, NOWHERE)
    assert BLOG.holds(page, NOWHERE)
    assert not YEAR.holds(page, frozenset({"posts"}))
    assert POSTS.holds(page, frozenset({"pages", "posts"}))
    assert not POSTS.holds(page, frozenset({"pages"}))


def test_a_scope_answers_itself_and_what_is_within() -> None:
    answers = {(str(one), str(other)) for one in ALL for other in ALL if one.answers(other)}

    within = {(str(WHOLE), str(scope)) for scope in ALL} | {(str(BLOG), str(YEAR))}
    assert answers == within | {(str(scope), str(scope)) for scope in ALL}
