"""Run a state machine over a fixed set of histories, or over as many new ones as are asked for."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.integration.logs import silence


def explore(machine: type[RuleBasedStateMachine], *, examples: int, steps: int) -> None:
    """`SITEMAPD_EXAMPLES` new histories, or `examples` that are always the same."""
    more = os.environ.get("SITEMAPD_EXAMPLES")
    with silence():
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=int(more or examples),
                stateful_step_count=steps,
                derandomize=more is None,
                deadline=None,
                database=None,
                report_multiple_bugs=False,
                phases=[Phase.generate] if os.environ.get("SITEMAPD_NO_SHRINK") else list(Phase),
                suppress_health_check=list(HealthCheck),
            ),
        )
