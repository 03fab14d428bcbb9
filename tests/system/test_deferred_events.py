"""A page appears at its publish_at and leaves at its expires, though nobody says anything then."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urljoin

import httpx

from tests.system.driver import System, wait_until


def at(seconds: float) -> str:
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def inspector(system: System, page: str) -> str:
    """What the page inspector of the console shows."""
    link = system.run("console", "link", "--user", "admin", "--to", system.address).stdout.strip()
    with httpx.Client(follow_redirects=True, timeout=30) as browser:
        form = browser.get(link).text
        fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))
        action = re.search(r'<form[^>]* action="([^"]+)"', form)
        assert action, form
        headers = {"Origin": system.address}
        browser.post(urljoin(link, action[1]), data=fields, headers=headers).raise_for_status()
        shown = browser.get(f"{system.address}/admin/inspector", params={"loc": page})
        return shown.raise_for_status().text


def test_a_page_comes_and_goes_by_its_own_times(system: System) -> None:
    page = f"{system.base}/offer"
    appears, leaves = at(6), at(9)
    sent = system.run("event", "send", page, "--publish-at", appears, "--expires", leaves, "--json")
    assert sent.returncode == 0, sent.stderr
    (ident,) = json.loads(sent.stdout)["steps"][0]["what"].split(", ")
    shown = json.loads(system.run("entry", page, "--json").stdout)
    before = datetime.now(UTC)

    wait_until(lambda: page in system.published(), "listed")
    assert datetime.now(UTC) >= datetime.fromisoformat(appears)
    wait_until(lambda: page not in system.published(), "unlisted")
    assert datetime.now(UTC) >= datetime.fromisoformat(leaves)

    if before < datetime.fromisoformat(appears):  # else the machine was too busy to ask in time
        assert shown["listed"] is False
        assert "to be published" in shown["why"]
    assert "expired" in inspector(system, page)
    found = json.loads(system.run("entry", page, "--json").stdout)
    said = [(each["event"], each["decision"]) for each in found["lately"]]
    assert said[0][0] == ident
    assert said[1:] == [("", "added"), ("", "expired")]
