"""Each alert fires when it should and is silent when it should be, as Prometheus itself judges."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.system.nginx import needs

PROMETHEUS = Path(__file__).resolve().parents[2] / "deploy" / "prometheus"
RULES = PROMETHEUS / "sitemapd.rules.yml"
MINUTES = 80

S = 'site="demo"'
UP = 'up{job="sitemapd"}'
MEMORY = "sitemapd_redis_memory_bytes"
ANSWERS = 'sitemapd_answer_seconds_count{site="demo",answer="%s"}'
READ = f'sitemapd_readback_pages{{{S},engine="google",state="%s"}}'
WAITS = 'sitemapd_event_to_published_seconds_bucket{site="demo",le="%s"}'


class Case(NamedTuple):
    """Series (name -> values, one a minute) with which an alert fires, and with which not."""

    fires: dict[str, str]
    calm: dict[str, str]


def steady(value: float) -> str:
    return f"{value}x{MINUTES}"


def rising(step: float, start: float = 0) -> str:
    return f"{start}+{step}x{MINUTES}"


def gauge(name: str, bad: float, good: float, labels: str = S) -> Case:
    series = f"sitemapd_{name}{{{labels}}}" if labels else f"sitemapd_{name}"
    return Case({series: steady(bad)}, {series: steady(good)})


def counter(name: str, labels: str = S, step: float = 1) -> Case:
    series = f"sitemapd_{name}_total{{{labels}}}" if labels else f"sitemapd_{name}_total"
    return Case({series: rising(step)}, {series: steady(7)})


def answers(bad: str, share: float, calm: float) -> Case:
    """An answer that is `share` of 60 a minute."""
    return Case(
        {ANSWERS % bad: rising(60 * share), ANSWERS % "accepted": rising(60 * (1 - share))},
        {ANSWERS % bad: rising(60 * calm), ANSWERS % "accepted": rising(60 * (1 - calm))},
    )


CASES = {
    "SitemapdNotScraped": Case(
        {'up{job="sitemapd"}': steady(0)}, {'up{job="sitemapd"}': steady(1)}
    ),
    "SitemapdRedisDown": gauge("up", 0, 1, ""),
    "SitemapdRedisNearlyFull": Case(
        {
            "sitemapd_redis_memory_bytes": steady(90),
            "sitemapd_redis_memory_limit_bytes": steady(100),
        },
        {"sitemapd_redis_memory_bytes": steady(90), "sitemapd_redis_memory_limit_bytes": steady(0)},
    ),
    "SitemapdRedisCannotWrite": gauge("redis_append_ok", 0, 1, ""),
    "SitemapdLogWasCut": counter("redis_truncated_loads", ""),
    "SitemapdNobodyWorks": gauge("workers", 0, 1, ""),
    "SitemapdEventsWaitTooLong": Case(
        {f"sitemapd_events_oldest_seconds{{{S}}}": rising(60)},
        {
            f"sitemapd_events_oldest_seconds{{{S}}}": rising(60),
            f'sitemapd_queue_paused{{{S},queue="events"}}': steady(1),
        },
    ),
    "SitemapdPublishingLags": Case(
        {WAITS % "1": rising(9), WAITS % "60": rising(10), WAITS % "+Inf": rising(10)},
        {WAITS % "1": rising(10), WAITS % "60": rising(10), WAITS % "+Inf": rising(10)},
    ),
    "SitemapdFilesStale": Case(
        {f"sitemapd_files_oldest_seconds{{{S}}}": rising(60)},
        {
            f"sitemapd_files_oldest_seconds{{{S}}}": rising(60),
            f'sitemapd_queue_paused{{{S},queue="publish"}}': steady(1),
        },
    ),
    "SitemapdPublishFails": counter("publish_failures", f'{S},cause="full"'),
    "SitemapdPublishingStopped": gauge("publishing_stopped", 1, 0),
    "SitemapdShardDamaged": gauge("files_quarantined", 1, 0),
    "SitemapdHeld": gauge("files_held", 1, 0),
    "SitemapdEventsFailed": counter("events_failed"),
    "SitemapdServerErrors": answers("failed", 0.1, 0),
    "SitemapdUnavailable": answers("unavailable", 0.5, 0.01),
    "SitemapdManyRefused": answers("refused", 0.3, 0.1),
    "SitemapdClockOff": gauge("clock_offset_seconds", -90, -5, ""),
    "SitemapdStaleSignatures": counter("requests_refused", f'{S},code="stale"'),
    "SitemapdConflicts": counter("requests_refused", f'{S},code="conflict"'),
    "SitemapdManyDuplicates": answers("duplicate", 0.7, 0.3),
    "SitemapdPausedLong": gauge("queue_paused", 1, 0, f'{S},queue="publish"'),
    "SitemapdEngineRefuses": Case(
        {f'sitemapd_notifications_total{{{S},engine="bing",outcome="forbidden"}}': rising(1)},
        {f'sitemapd_notifications_total{{{S},engine="bing",outcome="done"}}': rising(1)},
    ),
    "SitemapdPagesUnknown": Case(
        {READ % "late": steady(30), READ % "unknown": steady(40), READ % "known": steady(60)},
        {READ % "late": steady(12), READ % "unknown": steady(12), READ % "known": steady(88)},
    ),
    "SitemapdTargetBehind": gauge("target_behind_seconds", 90, 2, f'{S},target="web2"'),
    "SitemapdResyncStuck": gauge("resync_oldest_seconds", 30_000, 600),
    "SitemapdConfigurationRefused": gauge("configuration_refused", 1, 0, ""),
    "SitemapdLoopFails": gauge("loop_failing", 1, 0, f'{S},loop="notify"'),
    "SitemapdWorkersDie": Case(
        {
            f"sitemapd_lease_takeovers_total{{{S}}}": rising(1),
            f"sitemapd_events_adopted_total{{{S}}}": rising(1),
        },
        {
            f"sitemapd_lease_takeovers_total{{{S}}}": steady(9),
            f"sitemapd_events_adopted_total{{{S}}}": steady(9),
        },
    ),
}


def group(alert: str, series: dict[str, str], fires: int) -> dict[str, object]:
    """A test of promtool: how many times `alert` fires in the end."""
    sought = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
    expected = {"expr": sought, "eval_time": f"{MINUTES}m", "exp_samples": [{"value": fires}]}
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [expected],
    }


def promtool(*arguments: str | Path) -> None:
    needs("promtool")
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def judge(groups: list[dict[str, object]], where: Path) -> None:
    tests = {"rule_files": [str(RULES)], "evaluation_interval": "10m", "tests": groups}
    file = where / "alerts.json"  # which is YAML, too
    file.write_text(json.dumps(tests))
    promtool("test", "rules", file)


def test_the_rules_and_the_example_of_a_configuration_are_valid() -> None:
    promtool("check", "rules", RULES)
    # The token is a file of the host's.
    promtool("check", "config", "--syntax-only", PROMETHEUS / "prometheus.yml")


def test_every_alert_has_a_case() -> None:
    assert re.findall(r"- alert: (\w+)", RULES.read_text()) == [*CASES]


def test_each_alert_fires_for_its_case_and_for_nothing_less(tmp_path: Path) -> None:
    groups = [
        group(alert, series, fires)
        for alert, case in CASES.items()
        for series, fires in ((case.fires, 1), (case.calm, 0))
    ]
    judge(groups, tmp_path)


def test_a_case_that_does_not_hold_is_noticed(tmp_path: Path) -> None:
    wrong = group("SitemapdHeld", CASES["SitemapdHeld"].calm, fires=1)

    with pytest.raises(AssertionError, match="FAILED"):
        judge([wrong], tmp_path)
