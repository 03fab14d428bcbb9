"""The shell blocks of the documents are run as they are printed, on one `sitemapd up`.

Only placeholders are replaced: addresses, directories, the user and the paths of an installation.
What needs root, a network or an hour is listed with the reason; any other line is run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.system.driver import SITEMAPD, System
from tests.system.test_readme import commands
from tests.unit.worker.sources.cms import WordPress, served

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).resolve().parents[2]
NOT_RUN = {
    r"make ": "is this suite, or runs for an hour; make up: tests/system/test_readme.py",
    r"python -m tests\.faults": "needs root: tests/system/test_fault_tools.py",
    r"pipx |uv tool |pip install build": "installs: tests/system/test_installation.py",
    r"SITEMAPD_CONFIG=|python -m sitemapd": "of an installation: tests/system/test_installation.py",
    r"certbot ": "asks an authority on the internet; tests/system/test_host_files.py has --tls",
    r"apt-get |adduser ": "changes the machine, as root",
    r"python3 -m venv /opt|/opt/\S+/pip ": "installs from the network",
    r"ln -sf|rm -f /etc|sed -i ": "changes /opt or /etc, as root",
    r"mkdir -p /var/www|install .*(?:-o |/etc/)": "gives files to other users, as root",
    r"printf 'vm\.": "sets the kernel, as root",
    r"mkdir -p /etc/|printf '\[Service": "writes to /etc, as root",
    r"sitemapd site |sitemapd section |sitemapd user ": "changes the configuration of the other "
    "blocks: tests/system/test_live_configuration.py",
    r"systemctl |systemd-analyze ": "needs systemd; the units: tests/system/test_deploy_files.py",
    r"nginx -t": "reloads the nginx of the machine; its files: tests/system/test_nginx.py",
    r"promtool ": "reloads the Prometheus here; its files: tests/unit/deploy/test_monitoring.py",
    r"as\(\) ": "needs other users; `as` is defined to run what it is given",
    r"FLOWER_BASIC_AUTH": "flower is no dependency",
    r"kubectl ": "needs a cluster; its files: tests/system/test_kubernetes_files.py",
    r"as /opt/\S+ run worker": "runs on: tests/integration/publishing/test_hosts.py",
    r"sitemapd import --from crawl:": "needs the extra: tests/unit/worker/sources/test_crawl.py",
    r"sitemapd readback ": "needs an engine that answers: tests/system/test_readback.py",
    r"docker |chown ": "needs a container engine; its files: tests/system/test_deploy_files.py",
}  # fmt: skip
RESTORE = "sitemapd restore"
OWN = (
    "/readyz", "cat > /etc/sitemapd", "> deploy/secrets/sitemapd.acl", "${secret#whsec_}",
    "sitemapd verify --against", "sitemapd backup --check", RESTORE,
)  # fmt: skip
"""Lines whose blocks have a test of their own."""


class Block(NamedTuple):
    """One shell block, as its statements."""

    document: str
    line: int
    statements: list[str]

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def statements(block: str) -> list[str]:
    """The statements of a block: continued lines and here-documents stay together."""
    found = re.findall(r"(?m)^.*<<END\n(?s:.*?)\nEND$|^(?:.*\\\n)*.*$", block)
    return [each for each in found if each.strip() and not each.lstrip().startswith("#")]


def blocks() -> list[Block]:
    names = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    elsewhere = commands("First five minutes")  # runs in test_readme.py
    found = []
    for name in sorted({*names} - {"CHANGELOG.md"}):
        text = (ROOT / name).read_text(encoding="utf-8")
        for match in re.finditer(r"```sh\n(.*?)```", text, re.DOTALL):
            if match[1] not in elsewhere:
                line = text[: match.start()].count("\n") + 1
                found.append(Block(name, line, statements(match[1])))
    return found


BLOCKS = blocks()


def reason(statement: str) -> str | None:
    return next((why for start, why in NOT_RUN.items() if re.match(start, statement)), None)


def runs(block: Block) -> list[str]:
    return [each for each in block.statements if reason(each) is None]


class Reader:
    """Somebody who types what the documents say, in a directory with the checkout's files."""

    def __init__(self, system: System, directory: Path, wordpress: str) -> None:
        self.system, self.directory = system, directory
        self.replaced = {
            "/opt/sitemapd/bin/": "",
            "wordpress:https://www.example.com/": f"wordpress:{wordpress}/",
            "https://www.example.com": system.base,
            "http://sitemaps.example.com": system.address,
            "http://127.0.0.1/": f"{system.address}/",
            "--from ...": f"--from sitemap:{directory}/var/www/html/sitemap.xml",
        }
        self.environment = {
            **system.environment, "SITEMAPD_HOME": str(system.home),
            "PATH": f"{SITEMAPD.parent}:{os.environ['PATH']}",
            "secret": self.of_site("secrets"),
        }  # fmt: skip

    def of_site(self, field: str) -> str:
        config = (self.system.home / "sitemapd.toml").read_text()
        found = re.search(rf'(?m)^{field} = \["(.*?)"', config)
        assert found, field
        return found[1]

    def prepare(self) -> None:
        """Make the files and pages that the documents take for granted."""
        base, here = self.system.base, self.directory
        for name in ("var/www/html", "var/log/nginx", "var/backups/sitemapd", "backups",
                     "etc/sitemapd", "etc/nginx/snippets"):  # fmt: skip
            (here / name).mkdir(parents=True)
        shutil.copytree(ROOT / "deploy", here / "deploy", ignore=shutil.ignore_patterns("*.pyc"))
        shutil.copy(ROOT / "pyproject.toml", here)
        urls = "".join(f"<url><loc>{base}/old/{n}</loc></url>" for n in range(3))
        (here / "var/www/html/sitemap.xml").write_text(
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'
        )
        (here / "pages.csv").write_text(f"loc\n{base}/blog/1\n")
        line = '127.0.0.1 - - [{}] "GET /sitemap.xml HTTP/1.1" 200 99 "-" "Googlebot/2.1"\n'
        (here / "var/log/nginx/access.log").write_text(line.format("20/Nov/2026:10:00:00 +0000"))
        (here / "var/log/nginx/access.log.1").write_text(line.format("19/Nov/2026:10:00:00 +0000"))
        (here / "access.json").write_text(
            '{"time": "2026-11-20T10:00:00+00:00", "remote_addr": "127.0.0.1", "status": 200,'
            ' "request": "GET /sitemap.xml HTTP/1.1", "http_user_agent": "curl/8"}\n'
        )
        self.type([f"sitemapd event send {base}/page --watch"])

    def _here(self, line: str) -> str:
        for placeholder, value in self.replaced.items():
            line = line.replace(placeholder, value)
        return re.sub(r"(?<![\w/.])/(?=(?:var|etc|backups)/)", f"{self.directory}/", line)

    def type(self, lines: list[str]) -> list[tuple[str, int, str]]:
        """Each line, its exit code and what it printed, in one shell."""
        script = "".join(f"{self._here(line)}\nprintf '\\n@@%d\\n' $?\n" for line in lines)
        done = subprocess.run(
            ["sh", "-c", 'as() { "$@"; }\n' + script], cwd=self.directory, env=self.environment,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240, check=False,
        )  # fmt: skip
        found = re.findall(r"(?s)(.*?)\n@@(\d+)\n", done.stdout)
        assert len(found) == len(lines), done.stdout
        return [(line, int(code), out) for line, (out, code) in zip(lines, found, strict=True)]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    directory, wordpress = tmp_path_factory.mktemp("reader"), WordPress()
    system = System(directory / "home")
    system.start()
    wordpress.home = system.base
    for ident in range(1, 5):
        wordpress.add("posts", ident)
    with served(wordpress) as address:
        reader = Reader(system, directory, address)
        reader.prepare()
        yield reader
    system.end()


def done(typed: list[tuple[str, int, str]]) -> str:
    """What was printed; every line must have ended with 0."""
    assert [(line, out) for line, code, out in typed if code] == []
    return "".join(out for _, _, out in typed)


def block_with(text: str) -> Block:
    return next(each for each in BLOCKS if any(text in one for one in each.statements))


def test_every_reason_is_that_of_a_line() -> None:
    lines = [line for block in BLOCKS for line in block.statements]

    assert [start for start in NOT_RUN if not any(re.match(start, line) for line in lines)] == []


@pytest.mark.parametrize(
    "block",
    [each for each in BLOCKS if runs(each) and not any(own in str(runs(each)) for own in OWN)],
    ids=str,
)
def test_a_block_runs_as_it_is_printed(reader: Reader, block: Block) -> None:
    done(reader.type(runs(block)))


def test_the_last_step_of_the_installation_shows_the_page(reader: Reader) -> None:
    printed = done(reader.type(runs(block_with("/readyz"))))

    assert re.search(r"published +pages-1\.xml, sitemap\.xml|decided +\S+: same content", printed)
    assert f"<loc>{reader.system.base}/pages-1.xml</loc>" in printed


def test_the_configuration_that_the_guide_writes_is_valid(reader: Reader) -> None:
    done(reader.type(runs(block_with("cat > /etc/sitemapd"))))

    done(reader.type(["sitemapd config check --home /etc/sitemapd"]))


def test_the_container_files_have_a_password_and_addresses_for_the_network(reader: Reader) -> None:
    done(reader.type(runs(block_with("> deploy/secrets/sitemapd.acl"))))
    made = reader.directory / "deploy/secrets"

    assert re.search(r"#[0-9a-f]{64} ", (made / "sitemapd.acl").read_text())
    assert "port 6379" in (made / "redis.conf").read_text()
    assert "server web:8080;" in (made / "nginx.conf").read_text()
    done(reader.type(["sitemapd config check --home deploy/secrets"]))


def test_the_key_of_a_secret_is_the_label_of_the_metric(reader: Reader) -> None:
    (key,) = done(reader.type(runs(block_with("${secret#whsec_}")))).split()

    bearer = f"Bearer {reader.of_site('tokens')}"
    _, _, metrics = reader.system.get("/metrics", authorization=bearer)
    assert f'key="{key}"' in metrics.decode()


def test_a_reconcile_makes_the_source_the_truth(reader: Reader) -> None:
    """The first line names a difference, by its exit code; the others repair it."""
    block = block_with("sitemapd verify --against")

    (_, differs, said), *repaired = reader.type(runs(block))
    assert differs == 1, said
    done(repaired)
    listed = reader.type([f"sitemapd entry {reader.system.base}/blog/1"])
    assert "pages-1.xml" in done(listed)


def test_a_state_is_restored_as_it_was_saved(reader: Reader) -> None:
    send = f"sitemapd event send {reader.system.base}/kept --watch"
    done(reader.type([send, *runs(block_with("sitemapd backup --check")), f"{send} --type delete"]))
    restore, up, *after = runs(block_with(RESTORE))
    assert up == "sitemapd up --home DIR"

    with reader.system.away():
        done(reader.type([f"{restore.partition('#')[0]} --replace"]))
    done(reader.type(after))
    assert "pages-1.xml" in done(reader.type([f"sitemapd entry {reader.system.base}/kept"]))
