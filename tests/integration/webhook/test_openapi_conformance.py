"""The running webhook does what its published description says, for data that fits and does not.

More cases: SITEMAPD_SCHEMATHESIS=2000 (for each address; 10 unless told).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.served import OPERATOR, ROOT, TOKEN, Web, wait

CASES = os.environ.get("SITEMAPD_SCHEMATHESIS", "10")
SEED = "20261121"
CONFIG = """
[parameters]
"path.site" = "demo"

# Which base URL and sections a site has, and that a 31st of February is no day, no schema can say.
[checks]
positive_data_acceptance.expected-statuses = ["2xx", 401, 404, 409, 422]
negative_data_rejection.expected-statuses = [400, 401, 404, 405, 409, 411, 413, 415, 422]

# Each CMS has a body of its own, which is any JSON here: test_webhook_any_input.py, tests/fuzz.
[[operations]]
include-path = "/v1/sites/{site}/hooks/{source}"
enabled = false

# What a hub may say depends on what it was asked for: test_websub.py.
[[operations]]
include-path = "/v1/sites/{site}/hooks/websub"
enabled = false
"""


@pytest.fixture(scope="module")
def web(redis_server, tmp_path_factory, secret) -> Iterator[Web]:
    web = Web(redis_server, tmp_path_factory.mktemp("web"), secret, wait)
    yield web
    web.stop()


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("sender", ["nobody", "token", "signature", "operator"])
@pytest.mark.timeout(0 if "SITEMAPD_SCHEMATHESIS" in os.environ else 300)
def test_every_answer_is_one_that_is_described(web: Web, tmp_path: Path, sender: str) -> None:
    """Status, type, schema and headers of each answer; bad data refused, and good data taken."""
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": ""}
    options = ["--checks", "all", "--phases", "coverage,fuzzing", "--seed", SEED]
    # To a stranger every answer is the same few refusals.
    cases = str(max(1, int(CASES) // 3)) if sender == "nobody" else CASES
    options += ["--max-examples", cases, "--continue-on-failure", "--warnings", "off"]
    options += ["--suppress-health-check", "all"]  # they ask how fast the machine is
    if sender == "token":
        # Its check of authentication takes a second kind of credentials for a wrong first one.
        options += ["-H", f"Authorization: Bearer {TOKEN}", "--exclude-checks", "ignored_auth"]
    if sender == "operator":
        options += ["-H", f"Authorization: Bearer {OPERATOR}", "--exclude-checks", "ignored_auth"]
        options += ["--include-path-regex", "^/v1/sites(/[^/]+(/sections)?)?$"]
    if sender == "signature":
        # Signed whatever the tool makes of the headers, so that a missing credential is never seen.
        environment["SCHEMATHESIS_HOOKS"] = "tests.integration.webhook.signing"
        options += ["--exclude-checks", "ignored_auth", "--include-method", "POST"]

    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("schemathesis"), "--config-file", config, "run"),
            *(f"http://127.0.0.1:{web.port}/openapi.json", *options),
        ],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    generated = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert generated is not None
    assert generated[1] == generated[2]
    assert int(generated[1]) > 100
    taken = web.store.xlen("{demo}:inbox")
    assert (taken > 0) == (sender in {"token", "signature"})
    if sender == "operator":
        audited = [fields[b"action"] for _, fields in web.store.xrange("{_sitemapd}:audit")]
        assert {b"site add", b"section add"} <= set(audited)
