"""Sources that state a page in several places: all of it is imported, and a verify is quiet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import redis
from typer.testing import CliRunner

from deploy.cli.program import app
from tests.integration import independent_extensions as extensions
from tests.integration.conftest import RedisServer
from tests.integration.independent import Published
from tests.integration.logs import silence
from tests.integration.pipeline import NAME, Pipeline
from tests.unit.extensions import NAMESPACES

ORIGIN = "https://www.example.com"
NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
VIDEO = (
    "<video:video><video:thumbnail_loc>{0}/t</video:thumbnail_loc><video:title>{1}</video:title>"
    "<video:description>D</video:description><video:content_loc>{0}/{1}.mp4</video:content_loc>"
    "</video:video>"
)


@pytest.fixture
def site(store: redis.Redis, tmp_path: Path) -> Pipeline:
    return Pipeline(store, tmp_path / "public", ORIGIN)


def entry(path: str, content: str) -> str:
    return f"<url><loc>{ORIGIN}/{path}</loc>{content}</url>"


def sitemap(path: Path, *entries: str) -> Path:
    path.write_text(f'<urlset xmlns="{NS}" {NAMESPACES}>{"".join(entries)}</urlset>')
    return path


def index(folder: Path, *names: str) -> Path:
    listed = "".join(f"<sitemap><loc>{ORIGIN}/{name}</loc></sitemap>" for name in names)
    path = folder / "index.xml"
    path.write_text(f'<sitemapindex xmlns="{NS}">{listed}</sitemapindex>')
    return path


def titles(site: Pipeline, path: str) -> set[str]:
    pages, _ = extensions.published(Published(site.root, ORIGIN))
    return {dict(video)["/title"] for video in pages[f"{ORIGIN}/{path}"].videos}


def test_512_statements_of_a_page_with_a_video_each_are_one_page_with_512(
    site: Pipeline, tmp_path: Path
) -> None:
    """PROTOCOL L10, V11: a real sitemap names one video an entry."""
    entries = [entry("all", VIDEO.format(ORIGIN, n)) for n in range(512)]

    progress, said = site.bring(str(sitemap(tmp_path / "s.xml", *entries)))

    assert (progress.read, progress.sent, progress.united) == (512, 1, 511)
    assert titles(site, "all") == {str(n) for n in range(512)}
    assert [each.detail for each in said] == ["stated 512 times in different words: united"]


@pytest.mark.parametrize("names", [("a.xml", "b.xml"), ("b.xml", "a.xml")])
def test_what_several_files_say_of_a_page_is_united_and_stays_so(
    site: Pipeline, tmp_path: Path, names: tuple[str, str]
) -> None:
    date = "<lastmod>2026-02-02</lastmod>"
    filler = [entry(f"f/{n}", "") for n in range(1_500)]  # more than one batch
    sitemap(tmp_path / "a.xml", entry("p", date + VIDEO.format(ORIGIN, "one")), *filler)
    sitemap(tmp_path / "b.xml", *filler, entry("p#top", VIDEO.format(ORIGIN, "two")))
    source = str(index(tmp_path, *names))

    progress, _ = site.bring(source)
    sums, times = site.sums(), site.times()
    again, _ = site.bring(source)

    assert (progress.read, progress.sent, progress.united) == (3_002, 1_501, 1_501)
    assert titles(site, "p") == {"one", "two"}
    assert Published(site.root, ORIGIN).all()[f"{ORIGIN}/p"].lastmod == "2026-02-02"
    assert again == progress
    assert (sums, times) == (site.sums(), site.times())


CONFIG = """
redis_url = "{url}"
[sites.{name}]
base_url = "{base}"
web_root = "public"
tokens = ["0123456789abcdef"]
publish_interval = 0
hints = true
"""


def run(home: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    with silence():
        done = CliRunner().invoke(app, [*arguments, "--home", str(home), "--json"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, json.loads(done.stdout)


@pytest.fixture
def home(store: redis.Redis, redis_server: RedisServer, tmp_path: Path) -> Path:
    assert store.dbsize() == 0
    text = CONFIG.format(url=redis_server.url, name=NAME, base=ORIGIN)
    (tmp_path / "sitemapd.toml").write_text(text)
    return tmp_path


def test_verify_against_and_reconcile_unite_what_an_import_does(home: Path) -> None:
    first = sitemap(home / "s.xml", *(entry("p", VIDEO.format(ORIGIN, n)) for n in "ab"))
    assert run(home, "import", "--from", str(first))[0] == 0

    turned = sitemap(home / "t.xml", *(entry("p", VIDEO.format(ORIGIN, n)) for n in "ba"))
    code, said = run(home, "verify", "--against", str(turned))
    assert (code, said["equal"], said["stale"]) == (0, True, 0)

    fewer = sitemap(home / "u.xml", entry("p", VIDEO.format(ORIGIN, "b")))
    assert run(home, "verify", "--against", str(fewer))[1]["stale"] == 1
    code, done = run(home, "reconcile", "--against", str(fewer))
    assert (code, done["changed"]) == (0, 1)


@pytest.mark.parametrize(
    ("content", "refused"),
    [
        (f'<urlset xmlns="{NS}"/>', 0),
        ("<html><body>404</body></html>", 1),
        (f'<urlset xmlns="{NS}"><url><loc>https://elsewhere.example/</loc></url></urlset>', 1),
    ],
)
def test_an_import_that_sends_nothing_exits_with_1(home: Path, content: str, refused: int) -> None:
    (home / "s.xml").write_text(content)

    code, said = run(home, "import", "--from", str(home / "s.xml"))

    assert (code, said["sent"], said["refused"]) == (1, 0, refused)
