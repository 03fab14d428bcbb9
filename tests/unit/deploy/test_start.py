"""Which modules a process of sitemapd loads: a start takes as long as its imports."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CONFIG = """
[sites.a]
base_url = "https://a.example/"
web_root = "public"
tokens = ["0123456789abcdef"]
"""
NETWORK = {"httpx", "httpcore"}
FRAMEWORKS = {"celery", "kombu", "flask", "granian", "lxml", "pycountry", "sqlalchemy"}
STORE = {"redis", "redis.asyncio"}
SETTINGS = {"pydantic", "shared.config.settings"}
UNUSED_PARTS = {"redis.asyncio.client", "redis.cluster", "redis.sentinel", "asyncio.events"}
MOST_MODULES = {
    "--version": 235, "--help": 200, "secret": 210, "completion zsh": 205, "config check": 345,
    "site list": 366, "event send https://a.example/x --to http://127.0.0.1:1": 519, "status": 471,
}  # fmt: skip
"""Modules that a command loads, those of libraries included: 30 more take about as long as starting
Python does.
"""
MOST_OF_OTHERS = 500
NEVER = NETWORK | FRAMEWORKS | {"rich", "opentelemetry", "worker", "webhook", "click"}
REPORT = (  # an empty module, of shared.lean_imports, has no spec
    "print(*('loads:' + name for name, found in sys.modules.items()"
    " if getattr(found, '__spec__', None)), sep='\\n', file=sys.stderr)"
)
COMMAND = f"""
import sys
from deploy.cli.entry import main
try:
    main()
finally:
    {REPORT}
"""


def loaded(code: str, *arguments: str, **environment: str) -> set[str]:
    """The modules that a process of `code` has loaded when it ends."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("OTEL_")}
    said = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=kept | environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "Traceback" not in said.stderr
    words = said.stderr.split()
    return {each.removeprefix("loads:") for each in words if each.startswith("loads:")}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("home")
    (folder / "sitemapd.toml").write_text(CONFIG)
    return str(folder)


@pytest.mark.parametrize(
    "arguments", [["--help"], [], ["nothing"]], ids=["help", "no command", "unknown command"]
)
def test_the_list_of_commands_loads_no_command(arguments: list[str]) -> None:
    found = loaded(COMMAND, *arguments)

    assert "deploy.cli.program" in found
    assert [name for name in found if name.startswith("deploy.commands.")] == []
    assert found & (NEVER | STORE | SETTINGS) == set()


def test_a_new_secret_needs_neither_the_configuration_nor_the_store() -> None:
    found = loaded(COMMAND, "secret")

    assert "deploy.commands.secret" in found
    assert found & (NEVER | STORE | SETTINGS) == set()


def test_the_configuration_is_checked_without_the_store(home: str) -> None:
    found = loaded(COMMAND, "config", "check", "--home", home)

    assert "shared.config.settings" in found
    assert found & (NEVER | STORE) == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"], ["status", "--json"], ["entry", "https://a.example/x"], ["confirm"],
        ["dead", "list"], ["event", "list"], ["files", "list"],
        ["queue", "list"], ["notify", "list"], ["workers", "--json"], ["workers", "list", "--json"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_command_about_the_state_loads_the_store_and_no_part_of_the_services(
    home: str, arguments: list[str]
) -> None:
    found = loaded(COMMAND, *arguments, "--home", home)

    assert "shared.store.client" in found
    assert found & (NEVER | UNUSED_PARTS) == set()
    assert len(found) <= MOST_OF_OTHERS


@pytest.mark.parametrize("line", MOST_MODULES)
def test_an_everyday_command_loads_few_modules(home: str, line: str) -> None:
    found = loaded(COMMAND, *line.split(), SITEMAPD_HOME=home)

    assert len(found) <= MOST_MODULES[line]


@pytest.mark.parametrize("line", ["--version", "secret", "completion bash"])
def test_a_command_that_reads_no_configuration_loads_no_pydantic(home: str, line: str) -> None:
    assert "pydantic" not in loaded(COMMAND, *line.split(), SITEMAPD_HOME=home)


def test_a_part_that_was_left_out_is_loaded_for_whoever_uses_it() -> None:
    code = f"""
import sys
from shared.lean_imports import load_little
load_little()
import redis
before = set(sys.modules)
from redis.sentinel import Sentinel
from redis.cluster import RedisCluster
import asyncio.subprocess
from importlib import metadata
assert "asyncio.events" not in before
assert Sentinel.discover_master and RedisCluster.get_node and asyncio.subprocess.PIPE
assert metadata.version("redis") == redis.__version__
{REPORT}
"""
    assert loaded(code) >= UNUSED_PARTS - {"redis.asyncio.client"}


@pytest.mark.parametrize("name", ["up", "run"])
def test_a_command_that_becomes_a_service_leaves_libraries_whole(name: str) -> None:
    code = COMMAND.replace("finally:", "finally:\n    import redis")
    found = loaded(code, name, "--help")

    assert "redis.asyncio.client" in found


def test_a_command_that_is_traced_may_load_opentelemetry(home: str) -> None:
    found = loaded(
        COMMAND, "status", "--home", home, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1"
    )

    assert "opentelemetry.sdk.metrics" in found


SERVICES = {
    "web": (
        "deploy.web.server",
        {"rich", "opentelemetry", "pycountry", "lxml", "httpx", "worker", "schemathesis"},
    ),
    "worker": (
        "worker.celery_app, worker.runtime, worker.tasks",
        {"rich", "opentelemetry", "trio", "pycountry", "flask", "granian", "httpx", "sqlalchemy"},
    ),
}


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_loads_nothing_of_the_others(name: str) -> None:
    modules, never = SERVICES[name]
    begin = "from shared.lean_imports import leave_out; leave_out('opentelemetry')"

    found = loaded(f"import sys; {begin}; import {modules}; {REPORT}")

    assert "redis" in found
    assert found & never == set()


@pytest.mark.parametrize("module", ["worker.main", "deploy.web.main"])
def test_a_service_loads_its_parts_after_it_has_left_out_what_it_does_not_need(module: str) -> None:
    found = loaded(f"import sys, {module}; {REPORT}")

    assert "shared.telemetry.tracing" in found
    assert found & (STORE | SETTINGS | FRAMEWORKS) == set()
