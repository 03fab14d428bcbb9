"""Every real sitemap, feed and list of the corpus, imported, published, and read back by others."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from lxml import etree
from usp.tree import sitemap_tree_for_homepage
from usp.web_client.abstract_client import (
    AbstractWebClient,
    AbstractWebClientSuccessResponse,
    WebClientErrorResponse,
)

from tests.integration import independent
from tests.integration import independent_extensions as extensions
from tests.integration.independent import Expected, Published
from tests.integration.independent_extensions import Extras
from tests.integration.pipeline import Pipeline
from worker.reconcile.importer import Remark

CORPUS = Path(
    os.environ.get("SITEMAPD_CORPUS")
    or Path(__file__).resolve().parents[3].parent / "shared" / "corpus"
)
FORMS = ("xml", "xml.gz", "encoded")

# What a whole file gives rise to, apart from its entries: seen by eye, as (where, rule) and times.
REFUSED_FILES = {
    "malformed-01-debatesylhet-tag.xml": {("#8", "F4"): 1},
    "malformed-06-html404-edenvolgye.xml": {("", "F1"): 1},
    "malformed-07-truncated-fixture.xml": {("#10", "F4"): 1},
}
NOTED_FILES = {
    "empty-01-ucsd-library.xml": {("", "F12"): 1},
    "news-04-empty-eauenergie.xml": {("", "F12"): 1},
    "ns-01-https-pdf4teachers.xml": {("", "F1"): 1},
    "malformed-02-debatesylhet-amp.xml": {("#8", "F4"): 1},
    "malformed-03-ucsd-kba-amp.xml": {("#1", "F4"): 497},
    "malformed-04-aegis-leadingtext.xml": {("", "F3"): 1},
    "malformed-05-retype-utf16decl.xml.gz": {("", "F3"): 1},
}


# An image's path with `/./` is none that can be listed: its page comes without it.
DOTTED = {
    name: {(f"{name}#{number}", "L3"): 1 for number in numbers}
    for name, numbers in {
        "rankmath-01-regulated-page16.xml": [
            3, 15, 16, 60, 100, 102, 124, 125, 173, 174, 175, 177, 183
        ]
    }.items()
}  # fmt: skip
# No section of these sites is for news.
NO_NEWS = {
    name: [(f"{name}#{number}", "W11") for number in range(1, pages + 1)]
    for name, pages in [
        ("news-01-debatesylhet.xml", 60), ("news-02-360sports-crlf.xml", 2),
        ("news-03-boxofficeindia.xml", 89),
    ]
}  # fmt: skip


def manifest() -> list[dict[str, str]]:
    if not (CORPUS / "MANIFEST.tsv").is_file():
        return []
    with (CORPUS / "MANIFEST.tsv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["kind"] != "robots"]
    return [row | {"form": FORMS[n % 3]} for n, row in enumerate(rows)]


FILES = manifest()
Table = list[tuple[object, ...]]


@pytest.fixture(scope="module")
def table(corpus: Path) -> Iterator[Table]:
    """One row per file, shown at the end by `pytest -s`."""
    rows: Table = []
    yield rows
    print(f"\n{corpus.name}: {len(rows)} files")
    head = ("file", "form", "entries", "pages", "said: refused or noted, by rule")
    for row in [head, *rows]:
        print("{:<41}{:<8}{:>7}{:>7}  {}".format(*row))
    print(f"{sum(int(str(row[2])) for row in rows)} entries")


@pytest.fixture(scope="module")
def schemas(corpus: Path) -> dict[str, etree.XMLSchema]:
    return {
        f"{{{independent.NS}}}{root}": etree.XMLSchema(file=str(corpus / "xsd" / name))
        for root, name in (("urlset", "all.xsd"), ("sitemapindex", "siteindex.xsd"))
    }


@dataclass
class Case:
    """One file: the origin to import into, when, and what must come of it."""

    origin: str
    expected: Expected
    extras: dict[str, Extras]
    now: datetime | None = None

    def now_ms(self) -> int:
        return int((self.now or datetime.now(UTC)).timestamp() * 1000)


def expectation(row: dict[str, str], path: Path) -> Case:
    name, sound = row["file"], row["well_formed"] != "no"
    raws = independent.raw_pages(path, well_formed=sound)
    origin = independent.likely_origin(raws)
    if "index" in row["kind"]:
        refused = Counter((f"{name}#{raw.number}", "N4") for raw in raws)
        return Case(origin, Expected(refused=refused), {})
    broken, odd = REFUSED_FILES.get(name, {}), NOTED_FILES.get(name, {})
    whole = [raw for raw in raws if raw.loc is not None or (f"#{raw.number}", "F4") not in broken]
    expected = independent.judge(name, whole, origin, datetime.now(UTC))
    expected.refused.update({(name + at, rule): n for (at, rule), n in broken.items()})
    expected.noted.update({(name + at, rule): n for (at, rule), n in odd.items()})
    if not sound or path.suffix == ".txt" or name.startswith("feed-"):
        expected.noted.update(repeated(expected, {}))
        if name.startswith("feed-"):
            expected.noted[name, "partial"] += 1  # it names the newest pages only
        return Case(origin, expected, {})
    stated = extensions.stated(path)
    of = {f"{name}#{number}": extras for number, extras in stated.pages.items()}
    extras = {
        loc: extensions.union([of[where] for where, _ in places])
        for loc, places in expected.stated.items()
    }
    expected.noted.update(repeated(expected, of))
    expected.noted.update(alone(expected, of))
    refused = {place for place, _ in expected.refused}
    expected.noted += stated.noted
    expected.noted.update({at: n for at, n in stated.broken.items() if at[0] not in refused})
    return Case(origin, expected, extras, news_day(stated))


def repeated(expected: Expected, of: dict[str, Extras]) -> dict[tuple[str, str], int]:
    """The pages that are stated several times, and not always the same, where each is first."""
    return {
        (places[0][0], "L10"): 1
        for places in expected.stated.values()
        if len({(page, of.get(where)) for where, page in places}) > 1
    }


def alone(expected: Expected, of: dict[str, Extras]) -> dict[tuple[str, str], int]:
    """The pages that link to others and not to themselves (PROTOCOL H2)."""
    return {
        (where, "H2"): 1
        for loc, places in expected.stated.items()
        for where, _ in places
        if of[where].links and loc not in dict(of[where].links).values()
    }


def news_day(stated: extensions.Stated) -> datetime | None:
    """When all articles of a file were news: 36 hours after the first of them."""
    if not stated.dates:
        return None
    first = datetime.fromisoformat(min(stated.dates.values()))
    return first.replace(tzinfo=UTC) + timedelta(hours=36)


def counted(said: list[Remark], kind: str) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for each in said:
        if each.kind == kind:
            found[each.where, each.rule] += each.times
    return found


def whole_files(noted: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """The same, with what is old (PROTOCOL I2, V9, W9) told of the file and of no place in it."""
    found: Counter[tuple[str, str]] = Counter()
    for (where, rule), times in noted.items():
        found[where.partition("#")[0] if rule in {"I2", "V9", "W9"} else where, rule] += times
    return found


def by_rule(said: list[Remark]) -> str:
    rules = Counter[tuple[str, str]]()
    for each in said:
        rules[each.kind, each.rule] += each.times
    return ", ".join(f"{kind} {rule}: {n}" for (kind, rule), n in sorted(rules.items()))


def imported(
    row: dict[str, str], corpus: Path, client: redis.Redis, root: Path, table: Table
) -> tuple[Pipeline, Published]:
    """Import one file and hold what is published and what is reported against the expectation."""
    path = corpus / row["file"]
    case = expectation(row, path)
    origin, expected = case.origin, case.expected
    sections = {"news": {"news": True}}
    site = Pipeline(client, root, origin, case.now_ms, form=row["form"], sections=sections)

    progress, said = site.bring(f"sitemap:{path}")

    published = Published(root, origin)
    pages = published.all()
    table.append((row["file"], row["form"], row["entries"], len(pages), by_rule(said)))
    assert expected.pages == pages
    assert expected.refused == counted(said, "refused")
    assert expected.noted == whole_files(counted(said, "noted"))
    assert progress.refused == sum(expected.refused.values())
    assert progress.read == progress.sent + progress.refused + progress.united
    assert int(row["entries"]) <= progress.read
    assert all(len(listed) <= 10_000 for listed in published.pages.values())
    assert set(pages) == crawled(root, origin)
    check_extras(published, case.extras)
    return site, published


def check_extras(published: Published, stated: dict[str, Extras]) -> None:
    """Images, videos, links and news as they were stated, leaf by leaf (PROTOCOL C0, W11)."""
    pages, news = extensions.published(published)
    wanted = {loc: of for loc, of in stated.items() if of != Extras()}

    assert {
        loc: of._replace(news=()) for loc, of in wanted.items() if of != Extras(news=of.news)
    } == {loc: of for loc, of in pages.items() if of != Extras()}
    assert {
        loc: Extras(images=of.images, news=of.news) for loc, of in wanted.items() if of.news
    } == news


def check_schemas(published: Published, schemas: dict[str, etree.XMLSchema]) -> None:
    for url in published.indexes + published.shards:
        document = etree.fromstring(published.content(url))
        schemas[document.tag].assertValid(document)


@pytest.mark.parametrize("row", FILES[1:], ids=lambda row: row["file"])
def test_what_a_real_file_says_is_published_or_reported(
    row: dict[str, str],
    corpus: Path,
    store: redis.Redis,
    tmp_path: Path,
    schemas: dict[str, etree.XMLSchema],
    table: Table,
) -> None:
    """Every page is listed by the rules of PROTOCOL, or refused by name; every repair is noted."""
    _, published = imported(row, corpus, store, tmp_path / "public", table)

    check_schemas(published, schemas)


def test_one_event_among_50000_real_pages_changes_one_file_and_the_index(
    corpus: Path,
    store: redis.Redis,
    tmp_path: Path,
    schemas: dict[str, etree.XMLSchema],
    table: Table,
) -> None:
    site, before = imported(FILES[0], corpus, store, tmp_path / "public", table)
    sums, times = site.sums(), site.times()
    shard = before.shards[2]
    changed = before.pages[shard][4_321]._replace(lastmod="2026-11-20T08:00:00Z")

    site.send([{"type": "upsert", "loc": changed.loc, "lastmod": changed.lastmod}])

    after = Published(site.root, before.origin)
    expected = {"sitemap.xml", shard.rpartition("/")[2]}
    assert expected == {name for name, of in site.sums().items() if sums.get(name) != of}
    assert {*expected, ".sitemapd"} == {n for n, at in site.times().items() if times.get(n) != at}
    assert sums.keys() == site.sums().keys()
    assert before.all() | {changed.loc: changed} == after.all()
    check_schemas(after, schemas)


class Answer(AbstractWebClientSuccessResponse):
    def __init__(self, url: str, data: bytes) -> None:
        self._url, self._data = url, data

    def status_code(self) -> int:
        return 200

    def status_message(self) -> str:
        return "OK"

    def header(self, case_insensitive_name: str) -> None:  # noqa: ARG002  # usp names it
        return None

    def raw_data(self) -> bytes:
        return self._data

    def url(self) -> str:
        return self._url


class WebServer(AbstractWebClient):
    """Serves a web root like nginx with `gzip_static always`; `.gz` files go out as they are."""

    def __init__(self, root: Path, origin: str) -> None:
        self._root, self._origin = root, origin

    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        pass

    def get(self, url: str) -> Any:
        name = url.removeprefix(self._origin + "/")
        if (self._root / name).is_file():
            return Answer(url, (self._root / name).read_bytes())
        if (self._root / f"{name}.gz").is_file():
            return Answer(url, independent.text_of(self._root / f"{name}.gz").encode())
        return WebClientErrorResponse("not found", retryable=False)


def crawled(root: Path, origin: str) -> set[str]:
    """The pages that ultimate-sitemap-parser finds from robots.txt on."""
    tree = sitemap_tree_for_homepage(origin + "/", WebServer(root, origin), use_known_paths=False)
    return {page.url for page in tree.all_pages()}


def test_news_of_before_the_last_48_hours_is_named_and_its_page_is_listed(
    corpus: Path, store: redis.Redis, tmp_path: Path
) -> None:
    """PROTOCOL W4: 48 hours after the first day of three, on the hour, that day is over."""
    path = corpus / "news-01-debatesylhet.xml"
    stated = extensions.stated(path)
    first = min(stated.dates.values())
    old = {f"{path.name}#{n}" for n, date in stated.dates.items() if date == first}
    day = datetime.fromisoformat(first).replace(tzinfo=UTC) + timedelta(hours=48)
    origin = independent.likely_origin(independent.raw_pages(path, well_formed=True))
    site = Pipeline(
        store, tmp_path / "public", origin, lambda: int(day.timestamp() * 1000),
        sections={"news": {"news": True}},
    )  # fmt: skip

    _, said = site.bring(f"sitemap:{path}")

    published = Published(site.root, origin)
    assert 0 < len(old) < 60
    assert counted(said, "noted") == {(place, "W4"): 1 for place in old}
    assert len(published.all()) == 60
    assert sum(map(len, published.news.values())) == 60 - len(old)
