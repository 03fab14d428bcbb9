"""What running processes tell Prometheus over HTTP."""

from __future__ import annotations

import re
import tomllib

from tests.system.driver import System, wait_until


def scraped(system: System) -> dict[str, float]:
    config = tomllib.loads((system.home / "sitemapd.toml").read_text())
    (token,) = config["sites"]["demo"]["tokens"]
    status, headers, body = system.get("/metrics", authorization=f"Bearer {token}")
    assert status == 200
    assert headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = re.findall(r"(?m)^(sitemapd_\S+) (\S+)$", body.decode())
    return {name: float(value) for name, value in lines}


def test_an_event_is_counted_by_the_web_process_and_by_the_worker(system: System) -> None:
    """And the counts are still there when all of them have been killed and started again."""
    assert system.get("/metrics")[0] == 401
    system.send({"type": "upsert", "loc": f"{system.base}/a"})

    def counted() -> bool:
        found = scraped(system)
        return (
            found['sitemapd_events_changed_total{site="demo"}'] == 1
            and found['sitemapd_answer_seconds_count{answer="accepted",site="demo"}'] == 1
            and found['sitemapd_files_written_total{site="demo"}'] >= 2
            and found['sitemapd_event_to_published_seconds_count{site="demo"}'] == 1
        )

    wait_until(counted, "both to have stored their counts")
    system.kill("web")
    system.kill("worker")

    def again() -> bool:
        try:
            return counted()
        except OSError:
            return False

    wait_until(again, "the same counts from their successors")
