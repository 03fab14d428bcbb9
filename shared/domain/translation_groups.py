"""Translation groups: pages that are versions of each other (PROTOCOL H1-H5).

Senders state the group and the language of each page; every member lists the identical set,
itself included. Pure: members in, the set out, independent of their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple

from shared.errors import SitemapdError
from shared.sitemap.extensions.alternates import Alternates, ordered

MAX_MEMBERS = 1_000
"""Pages of a group: each is read when the set changes. Our own limit, not one of the protocol."""


GROUP = "group "
"""Prefix of the name of a group in `expiry` whose members other sites lack; its digest follows."""


class GroupFullError(SitemapdError):
    """A translation group without room for another page."""


class GroupMember(NamedTuple):
    """One page of a group: the stamp of its event, the language codes it serves, and the site that
    lists it (empty: the one that stores this).
    """

    stamp: int
    codes: tuple[str, ...]
    site: str = ""

    def pack(self) -> bytes:
        """The stored form of the member."""
        of = f"@{self.site}" if self.site else ""
        return self.stamp.to_bytes(8, "big") + (",".join(self.codes) + of).encode()

    @classmethod
    def unpack(cls, stored: bytes) -> GroupMember:
        """The member that `pack` wrote."""
        codes, _, site = stored[8:].decode().partition("@")
        return cls(int.from_bytes(stored[:8], "big"), tuple(codes.split(",")), site)


Members = Mapping[str, GroupMember]
"""The pages of a group by their loc."""


def own(members: Members) -> dict[str, GroupMember]:
    """The members that the site itself lists."""
    return {loc: member for loc, member in members.items() if not member.site}


def digest_of(group: str) -> bytes:
    """The eight bytes that stand for a group."""
    return blake2b(group.encode(), digest_size=8, person=b"group").digest()


def alternates(members: Members) -> Alternates:
    """The set that every member lists: one URL for each code, empty with fewer than two codes.

    Of two pages that claim one code the later event wins (H5: one URL per code); the other returns
    when that page leaves.
    """
    best: dict[str, tuple[int, str]] = {}
    for loc, member in members.items():
        claim = member.stamp, loc
        for code in member.codes:
            best[code] = max(claim, best.get(code, claim))
    if len(best) < 2:  # a page is no alternate of itself alone
        return ()
    return ordered((code, loc) for code, (_, loc) in best.items())


def listed_by(loc: str, found: Alternates) -> Alternates:
    """`found` as the page `loc` lists it: empty if `loc` is not in it (H2, self-reference)."""
    return found if any(href == loc for _, href in found) else ()
