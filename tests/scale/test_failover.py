"""A master killed under load: what was answered 202 with replicas confirmed is never lost."""

from __future__ import annotations

import pytest

from tests.scale.failover import SET_UPS, measure

CONFIRMED = [
    name for name, set_up in SET_UPS.items()
    if name.startswith("sentinel") and set_up.replicas and set_up.lag
]  # fmt: skip


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CONFIRMED)
def test_nothing_that_replicas_confirmed_is_lost(name: str) -> None:
    found = measure(name, 1)

    assert (found.lost, found.wrong) == (0, []), str(found)


@pytest.mark.scale
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SET_UPS)
def test_every_set_up_goes_on_and_a_reconcile_heals_what_is_lost(name: str) -> None:
    found = measure(name, 5)
    print(found)

    assert found.after_reconcile == 0, str(found)
    if SET_UPS[name].replicas or SET_UPS[name].store is None:
        assert found.lost == 0, str(found)
    assert not found.wrong
