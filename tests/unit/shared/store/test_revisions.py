"""Changed lines as a commit packs them, read again by the revisions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.store.publishing import revisions
from worker.publishing.shard_file import MOST_BYTES, MOST_LINES, pack_lines


@given(st.lists(st.tuples(st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=9))))
def test_revisions_read_the_lines_that_a_commit_packs(
    changes: list[tuple[bytes | None, bytes | None]],
) -> None:
    fields = {b"shard": b"pages/1", b"file": b"", b"changed": b"1", b"lines": pack_lines(changes)}

    found = revisions._revision("1-0", fields).lines

    assert found == (tuple(changes) or None)


@pytest.mark.parametrize(
    "changes", [[(b"x", None)] * (MOST_LINES + 1), [(None, b"x" * (MOST_BYTES + 1))]]
)
def test_lines_that_are_too_many_or_too_large_are_not_kept(
    changes: list[tuple[bytes | None, bytes | None]],
) -> None:
    assert pack_lines(changes) == b""
