"""Where a one-time link into the console may lead."""

from __future__ import annotations

import pytest

from deploy.local.login_link import where
from shared.config.console import Console
from shared.errors import ConfigError

HERE = "http://127.0.0.1:8080"
ORIGIN = "https://sitemaps.example.com"


@pytest.mark.parametrize(
    ("origin", "running", "to", "found"),
    [
        ([], HERE, None, HERE),
        ([], "", HERE, HERE),
        ([ORIGIN], HERE, None, ORIGIN),
        ([ORIGIN], "", f"{ORIGIN}:8443", f"{ORIGIN}:8443"),
    ],
)
def test_a_link_leads_where_the_console_answers(
    origin: list[str], running: str, to: str | None, found: str
) -> None:
    assert where(Console(origin=origin), running, to) == found


@pytest.mark.parametrize(
    ("origin", "running", "to"),
    [
        ([], "", None),
        ([], "http://192.0.2.1:8080", None),
        ([], HERE, "https://www.example.com"),
        ([ORIGIN], HERE, "https://www.example.com"),
        ([ORIGIN], HERE, HERE),
    ],
)
def test_no_link_leads_to_a_host_at_which_the_console_does_not_answer(
    origin: list[str], running: str, to: str | None
) -> None:
    with pytest.raises(ConfigError, match="origin"):
        where(Console(origin=origin), running, to)
