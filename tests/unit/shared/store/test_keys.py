"""No name that a user can choose makes one key of Redis another (RELIABILITY T36)."""

from __future__ import annotations

import inspect
from collections.abc import Hashable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.domain.page_record import bucket_of, owner_of
from shared.sitemap.shards import SECTION, Shard
from shared.store.key_table import PERMANENT
from shared.store.keys import EVERYWHERE, Keys
from webhook.auth import DELIVERY

WORDS = sorted(
    {part for entry in PERMANENT for part in entry.split(":") if part}
    | {
        "seen",
        "files",
        "shards",
        "blocks",
        "pending",
        "taking",
        "sending",
        "tries",
        "dead",
        "asked",
    }
)
numbers = st.integers(0, 1 << 40)
names = st.sampled_from(WORDS) | st.from_regex(SECTION, fullmatch=True)
engines = names | st.from_regex(r"[a-z0-9_-]{1,32}", fullmatch=True)
idents = (
    st.sampled_from([*WORDS, "pages:shards", "pages:pending:1", "section:seen:shards", ":", "x:1"])
    | st.from_regex(DELIVERY, fullmatch=True)
    | st.tuples(names, names, names).map(".".join)
)
digests = st.binary(min_size=8, max_size=8)
shards = st.builds(Shard, names, st.integers(1, 99) | numbers)
DRAWN: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
    "seen": (idents,), "pulse": (numbers,), "hour": (numbers,), "accepted": (numbers,),
    "purged": (numbers.map(str),), "notify": (engines,),
    "followed": (engines,), "target": (engines,), "target_lease": (engines,),
    "sending": (engines,), "tries": (engines,), "notified": (engines,),
    "spent": (engines, st.from_regex(r"2[0-9]{7}", fullmatch=True)), "notify_lease": (engines,),
    "loc": (digests,), "id": (digests,), "cluster": (digests,),
    "importing": (digests.map(bytes.hex),),
    "shards": (names,), "files": (names,), "pending": (shards,), "taking": (shards,),
    "blocks": (shards,), "index": (numbers,),
}  # fmt: skip


def _plain(keys: Keys) -> dict[str, str]:
    return {name: value for name, value in vars(keys).items() if name != "prefix"}


def _methods() -> set[str]:
    return {name for name, _ in inspect.getmembers(Keys, inspect.isfunction) if name[0] != "_"}


@st.composite
def keys(draw: st.DrawFn) -> tuple[Hashable, str]:
    """What a key is of, and its name."""
    site = draw(st.sampled_from(["demo", "sitemapd", "seen"]))
    made = Keys(site)
    name = draw(st.sampled_from(sorted(_plain(made)) + sorted(DRAWN) * 2))
    if name not in DRAWN:
        return (site, name), _plain(made)[name]
    given_ = tuple(draw(each) for each in DRAWN[name])
    of = (bucket_of(given_[0]),) if name in {"loc", "id"} else given_
    return (site, name, *of), getattr(made, name)(*given_)


def test_every_kind_of_key_is_drawn() -> None:
    assert _methods() == set(DRAWN)


@settings(max_examples=1000)
@given(keys(), keys())
def test_two_things_never_have_one_key(one: Any, other: Any) -> None:
    assert (one[0] == other[0]) == (one[1] == other[1])


def test_keys_without_a_name_in_them_differ() -> None:
    plain = _plain(Keys("demo"))

    assert len(set(plain.values())) == len(plain)


def test_no_site_has_the_prefix_of_what_belongs_to_none() -> None:
    assert (EVERYWHERE[0], EVERYWHERE[-2:]) == ("{", "}:")
    assert not SECTION.fullmatch(EVERYWHERE[1:-2])


@settings(max_examples=1000)
@given(*[st.text(st.sampled_from("ab\0 1"), max_size=4)] * 6)
def test_two_ids_of_a_sender_have_one_owner_only_if_they_are_equal(
    kind: str, ident: str, locale: str, kind2: str, ident2: str, locale2: str
) -> None:
    same = (kind, ident, locale) == (kind2, ident2, locale2)

    assert same == (owner_of("x", kind, ident, locale) == owner_of("x", kind2, ident2, locale2))
