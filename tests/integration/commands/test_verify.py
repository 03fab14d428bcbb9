"""The commands `verify`, `check`, `rebuild`, `doctor` and `status` on a state that disagrees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import redis
from typer.testing import CliRunner, Result

from deploy.cli.program import app
from shared.domain.page_record import digest_of
from shared.store.keys import field
from shared.store.operations.checks import CheckStore
from tests.integration.conftest import RedisServer
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig

CONFIG = """
redis_url = "{url}"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["0123456789abcdef"]
publish_interval = 0
"""


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    rig = Rig(store, tmp_path / "public")
    rig.do(*({"type": "upsert", "loc": f"p/{n}"} for n in range(4)))
    return rig


@pytest.fixture
def home(redis_server: RedisServer, rig: Rig, tmp_path: Path) -> Path:
    text = CONFIG.format(url=redis_server.url, base=rig.site.base_url)
    (tmp_path / "sitemapd.toml").write_text(text)
    return tmp_path


def run(home: Path, *arguments: str) -> Result:
    with silence():
        result = CliRunner().invoke(app, [*arguments, "--home", str(home)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def answer(home: Path, *arguments: str) -> tuple[int, Any]:
    result = run(home, *arguments, "--json")
    return result.exit_code, json.loads(result.stdout)


def consistency(home: Path) -> str:
    checks = answer(home, "doctor", "--offline")[1]["checks"]
    return next(each["status"] for each in checks if each["check"] == "consistency")


def test_a_line_that_no_record_knows_is_named_everywhere_and_rebuilt(home: Path, rig: Rig) -> None:
    assert run(home, "verify").stdout.startswith("equal: ")
    assert consistency(home) == "skip"
    digest = digest_of(f"{BASE}p/1")
    rig.client.hdel(rig.keys.loc(digest), field(digest))

    code, said = answer(home, "verify")
    checked, report = answer(home, "check", "--no-served")

    assert (code, said["equal"], said["differences"]) == (1, False, [])
    assert [(each["check"], each["found"]) for each in said["state"]] == [("unknown-line", 1)]
    assert f"unknown-line {BASE}p/1" in run(home, "verify").stdout
    found = {each["check"]: each for each in report["findings"] if each["severity"] == "error"}
    assert checked == 1
    assert "sitemapd rebuild" in found["unknown-line"]["todo"]
    assert consistency(home) == "fail"
    assert answer(home, "status")[1][0]["disagrees"] == ["unknown-line 1"]

    assert answer(home, "rebuild") == (0, {"touched": [], "repaired": {"unknown-line": 1}})

    assert answer(home, "verify")[0] == 0
    assert "sitemapd rebuild" in CheckStore(rig.client, rig.name).asked()
    assert answer(home, "check", "--no-served")[0] == 0
    assert consistency(home) == "ok"
    assert answer(home, "status")[1][0]["disagrees"] == []


def test_pages_whose_lines_are_nowhere_are_to_be_sent_again(home: Path, rig: Rig) -> None:
    (shard,) = rig.state.files(["pages"])
    rig.client.delete(rig.keys.blocks(shard))
    (rig.root / "pages-1.xml").write_bytes(b"spoilt")

    done = run(home, "rebuild")

    assert done.exit_code == 1
    assert "4 pages have no stored entry and are not listed: sitemapd reconcile" in done.stdout
    assert run(home, "verify").exit_code == 0
