"""Imports that are cut off, killed, repeated, overtaken by events, large."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from shared.errors import SourceError
from shared.events.event import Event
from tests.integration.conftest import RedisServer
from tests.integration.independent import Page, Published
from tests.integration.pipeline import NAME, Pipeline
from worker.reconcile.importer import Importer, ImportProgress, Remark
from worker.sources import read

ORIGIN = "https://www.example.com"
PAGES = 5_500
NOW = 1_795_256_430_000
"""2026-11-21T10:20:30Z, in milliseconds."""


class CutOffError(Exception):
    """The test ended an import in its middle."""


@pytest.fixture
def site(store: redis.Redis, tmp_path: Path) -> Pipeline:
    return Pipeline(store, tmp_path / "public", ORIGIN, shard_urls=1000)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Pages of which every hundredth is of another site and every fiftieth has a bad date."""
    path = tmp_path / "pages.ndjson"
    path.write_text("".join(line(number) for number in range(PAGES)))
    return path


def line(number: int, lastmod: str = "2026-01-01") -> str:
    host = "https://elsewhere.example" if number % 100 == 7 else ORIGIN
    lastmod = "01/02/2026" if number % 50 == 3 else lastmod
    return json.dumps({"loc": f"{host}/{number}", "lastmod": lastmod}) + "\n"


def expected_pages() -> dict[str, Page]:
    dates = {n: None if n % 50 == 3 else "2026-01-01" for n in range(PAGES) if n % 100 != 7}
    return {f"{ORIGIN}/{n}": Page(f"{ORIGIN}/{n}", date) for n, date in dates.items()}


def expected_report() -> set[tuple[str, str, str]]:
    refused = {("refused", f"pages.ndjson#{n + 1}", "L5") for n in range(7, PAGES, 100)}
    return refused | {("noted", f"pages.ndjson#{n + 1}", "M1") for n in range(3, PAGES, 50)}


def reported(said: list[Remark]) -> set[tuple[str, str, str]]:
    found = {(each.kind, each.where, each.rule) for each in said}
    assert len(found) == len(said)
    return found


def cut_off_at(sent: int) -> Callable[[ImportProgress], None]:
    def report(progress: ImportProgress) -> None:
        if progress.sent >= sent:
            raise CutOffError

    return report


def test_an_import_that_was_cut_off_goes_on_and_reports_the_whole(
    site: Pipeline, source: Path
) -> None:
    with pytest.raises(CutOffError):
        site.bring(f"ndjson:{source}", report=cut_off_at(3000))

    progress, said = site.bring(f"ndjson:{source}")

    refused = PAGES // 100
    assert ImportProgress(PAGES, PAGES - refused - 3000, refused, skipped=3000) == progress
    assert expected_pages() == Published(site.root, ORIGIN).all()
    assert expected_report() == reported(said)


CHILD = """
import os, signal, sys
from pathlib import Path
import redis
from tests.integration.pipeline import Pipeline

def report(progress):
    if progress.sent >= 2000:
        os.kill(os.getpid(), signal.SIGKILL)

url, root, base, source = sys.argv[1:]
with redis.Redis.from_url(url) as client:
    Pipeline(client, Path(root), base, shard_urls=1000).bring(source, report=report)
"""


def test_an_import_whose_process_was_killed_goes_on(
    site: Pipeline, source: Path, redis_server: RedisServer
) -> None:
    arguments = [redis_server.url, str(site.root), ORIGIN, f"ndjson:{source}"]
    here = Path(__file__).resolve().parents[3]

    killed = subprocess.run([sys.executable, "-c", CHILD, *arguments], cwd=here, check=False)
    progress, said = site.bring(f"ndjson:{source}")

    assert killed.returncode == -signal.SIGKILL
    assert progress.skipped == 2000
    assert expected_pages() == Published(site.root, ORIGIN).all()
    assert expected_report() == reported(said)


def test_a_source_that_changed_after_the_break_loses_no_page(site: Pipeline, source: Path) -> None:
    """A newer export under the same name begins with new pages and dates."""
    with pytest.raises(CutOffError):
        site.bring(f"ndjson:{source}", report=cut_off_at(3000))
    newer = [f"{ORIGIN}/new/{n}" for n in range(1500)]
    rows = [json.dumps({"loc": loc}) + "\n" for loc in newer]
    source.write_text("".join(rows + [line(n, "2026-02-02") for n in range(PAGES)]))

    progress, _ = site.bring(f"ndjson:{source}")

    pages = Published(site.root, ORIGIN).all()
    assert progress.skipped == 0
    assert set(newer) | expected_pages().keys() == pages.keys()
    assert {None, "2026-02-02"} == {page.lastmod for page in pages.values()}


def test_a_page_that_changed_after_the_import_began_keeps_that_change(
    site: Pipeline, source: Path
) -> None:
    with pytest.raises(CutOffError):
        site.bring(f"ndjson:{source}", report=cut_off_at(1000))
    site.send([{"type": "upsert", "loc": f"{ORIGIN}/5000", "lastmod": "2026-11-11"}])
    site.send([{"type": "delete", "loc": f"{ORIGIN}/5001"}])

    site.bring(f"ndjson:{source}")

    pages = Published(site.root, ORIGIN).all()
    assert pages[f"{ORIGIN}/5000"].lastmod == "2026-11-11"
    assert f"{ORIGIN}/5001" not in pages


def test_a_second_import_touches_no_file(site: Pipeline, source: Path) -> None:
    first = site.bring(f"ndjson:{source}")
    sums, times = site.sums(), site.times()

    second = site.bring(f"ndjson:{source}")

    assert first == second
    assert (sums, times) == (site.sums(), site.times())


def test_a_finished_import_leaves_no_key_behind(
    site: Pipeline, source: Path, store: redis.Redis
) -> None:
    with pytest.raises(CutOffError):
        site.bring(f"ndjson:{source}", report=cut_off_at(1000))
    (mark,) = store.keys(f"{{{NAME}}}:import:*")
    assert 0 < store.ttl(mark) <= 7 * 24 * 3600

    site.bring(f"ndjson:{source}")

    assert store.keys(f"{{{NAME}}}:import:*") == []


def test_an_import_that_could_not_begin_leaves_no_key_behind(
    site: Pipeline, source: Path, store: redis.Redis
) -> None:
    """Else the next one would stand at the moment when this one failed."""
    with pytest.raises(SourceError):
        site.bring(f"ndjson:{source.with_name('missing')}")

    assert store.keys(f"{{{NAME}}}:import:*") == []


def test_memory_does_not_grow_with_the_source(
    store: redis.Redis, redis_server: RedisServer
) -> None:
    """100,000 pages take at most 32 MiB more than the interpreter with its imports."""
    assert store.dbsize() == 0
    command = [sys.executable, "-m", "tests.bench.import_million", "--urls", "100000"]
    here = Path(__file__).resolve().parents[3]

    ran = subprocess.run(
        [*command, "--source", "sitemap", "--redis", redis_server.url],
        cwd=here, capture_output=True, check=True, text=True,
    )  # fmt: skip

    figures = json.loads(ran.stdout)
    assert 100_000 == figures["urls"] == figures["listed"]
    assert figures["peak_mib"] - figures["peak_mib_before"] < 32


IMAGE = "http://www.google.com/schemas/sitemap-image/1.1"
NEWS_SPACE = "http://www.google.com/schemas/sitemap-news/0.9"
ARTICLE = (
    "<news:news><news:publication><news:name>N</news:name><news:language>en</news:language>"
    "</news:publication><news:publication_date>2026-11-21</news:publication_date>"
    "<news:title>T</news:title></news:news>"
)
EXTENDED = (
    f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="{IMAGE}"'
    f' xmlns:news="{NEWS_SPACE}"><url><loc>{ORIGIN}/a</loc><image:image><image:loc>{ORIGIN}/1.png'
    "</image:loc><image:title>old</image:title></image:image><image:image><image:loc>2.png"
    f"</image:loc></image:image>{ARTICLE}</url></urlset>"
)


@pytest.mark.parametrize("news", [False, True])
def test_extensions_come_with_their_pages_and_what_cannot_is_said(
    store: redis.Redis, tmp_path: Path, *, news: bool
) -> None:
    """PROTOCOL I1, I2, W11: no page is lost for an image or for news."""
    path = tmp_path / "s.xml"
    path.write_text(EXTENDED)
    options = {"sections": {"news": {"news": True}}} if news else {}
    settings = Pipeline(store, tmp_path / "public", ORIGIN, **options).settings
    said: list[Remark] = []
    site = settings.sites[NAME]

    Importer(store, NAME, site, None, lambda: NOW).run(
        str(path), read(str(path)), on_remark=said.append, report=lambda _: None, drain=lambda: None
    )

    ((_, fields),) = store.xrange(f"{{{NAME}}}:inbox")
    event = Event.load(fields[b"e"])
    left_out = {(each.rule, each.detail.partition(":")[0]) for each in said}
    assert event.images == ({"loc": f"{ORIGIN}/1.png"},)
    assert (event.news is not None) == news
    assert {("L1", "images[1] left out"), ("I2", "image")} <= left_out
    assert (("W11", "news left out") in left_out) == (not news)


def test_a_far_version_in_a_list_is_refused_and_said(site: Pipeline, tmp_path: Path) -> None:
    """RELIABILITY T37: it would hold the page against every later event."""
    path = tmp_path / "pages.csv"
    path.write_text(f"loc,version\n{ORIGIN}/a,140737488355327\n{ORIGIN}/b,1795256430000\n")

    done, said = site.bring(f"csv:{path}")

    assert (done.sent, done.refused) == (1, 1)
    (refused,) = said
    assert "140737488355327 is in the year 6429" in refused.detail
