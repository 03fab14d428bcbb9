"""What INFO says of the replication histories of a server."""

from __future__ import annotations

import pytest

from shared.store.servers.replica_wait import histories_in

NOW, NONE = "0a" * 20, "0" * 40


@pytest.mark.parametrize("former", ["00" + "1f" * 18 + "00", "f" * 40])
def test_a_history_that_begins_or_ends_with_zeros_is_one(former: str) -> None:
    info = f"role:master\r\nmaster_replid:{NOW}\r\nmaster_replid2:{former}\r\nmaster_repl_offset:1"

    assert histories_in(info.encode()) == (NOW, former)


def test_a_server_that_was_never_promoted_continues_none() -> None:
    assert histories_in(f"master_replid:{NOW}\r\nmaster_replid2:{NONE}".encode()) == (NOW, "")
