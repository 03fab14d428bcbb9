"""Webhooks of a CMS and a reconcile with its interface make the same pages, with the same ids."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.errors import SourceError
from tests.integration.reconcile.cms_cases import (
    CASES,
    Case,
    prismic,
    sanity,
    wagtail,
    wagtail_without_dates,
)
from tests.integration.reconcile.reconciled import differences, reconcile
from tests.integration.rig import BASE, Rig
from tests.unit.webhook.sources.delivering import SECRET, STANDARD, delivered, signed
from tests.unit.worker.sources.cms import served
from tests.unit.worker.sources.hosted import (
    KEY,
    Shopify,
)
from tests.unit.worker.sources.self_hosted import Directus
from webhook.sources.adapter import AdapterContext
from worker.sources import Item, RecordRefusal, SourceOptions, read

KEYED = [make for make in CASES if make not in {wagtail, wagtail_without_dates}]
everywhere = pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)


def rigged(store: redis.Redis, tmp_path: Path, case: Case, **more: Any) -> Rig:
    (tmp_path / "public").mkdir()
    secret = {} if case.name in STANDARD else {"secret": SECRET}
    connection = secret | case.connection
    return Rig(
        store, tmp_path / "public", sections={"posts": {}}, sources={case.name: connection},
        shrink_share=1, **more,
    )  # fmt: skip


def items(rig: Rig, case: Case, url: str, key: str | None = None) -> list[Item]:
    access = SourceOptions.of(rig.site, case.key if key is None else key, "", lambda _: None)
    return list(read(f"{case.name}:{url}{case.server.address}", access))


def receive(rig: Rig, case: Case, body: Any, headers: dict[str, str]) -> None:
    """A delivery of the vendor, from its bytes to the files."""
    connection = rig.site.sources[case.name]
    where = AdapterContext(case.name, connection, rig.site.rules)
    now = rig.resyncs.begin_ms() / 1000
    if events := delivered(signed(case.name, body, headers, at=now), where, now).events:
        rig.inbox.accept(events)


def listed(rig: Rig) -> set[str]:
    return {loc.removeprefix(BASE) for loc in rig.listed()}


@everywhere
def test_after_its_webhooks_a_reconcile_finds_no_difference(
    store: redis.Redis, tmp_path: Path, make: Callable[[], Case]
) -> None:
    case = make()
    rig = rigged(store, tmp_path, case)
    for body, headers in case.sent:
        receive(rig, case, body, headers)
    rig.settle()
    assert listed(rig) == case.listed

    with served(case.server) as url:
        assert differences(rig, items(rig, case, url)) == set()


@contextmanager
def reconciled(
    store: redis.Redis, tmp_path: Path, make: Callable[[], Case]
) -> Iterator[tuple[Case, Rig, str]]:
    """A CMS whose pages are known by its interface alone, and its address."""
    case = make()
    rig = rigged(store, tmp_path, case)
    with served(case.server) as url:
        assert reconcile(rig, items(rig, case, url)).complete
        assert listed(rig) == case.listed
        yield case, rig, url


@everywhere
def test_what_a_reconcile_listed_is_known_to_its_webhooks_by_id(
    store: redis.Redis, tmp_path: Path, make: Callable[[], Case]
) -> None:
    """A delete that names an id alone takes a page away that only a reconcile has seen."""
    with reconciled(store, tmp_path, make) as (case, rig, _):
        receive(rig, case, *case.gone)
        rig.settle()
        assert case.first in case.listed
        assert case.first not in listed(rig)


@everywhere
def test_what_went_unseen_leaves_by_a_reconcile(
    store: redis.Redis, tmp_path: Path, make: Callable[[], Case]
) -> None:
    with reconciled(store, tmp_path, make) as (case, rig, url):
        server = case.server
        rows = server.rows
        if isinstance(server, Shopify):
            rows = server.objects["products"]
        elif isinstance(server, Directus):
            rows = server.collections["articles"][2]
        del rows[0]
        reconcile(rig, items(rig, case, url))
        assert case.first not in listed(rig)
        assert len(listed(rig)) >= len(case.listed) - 2  # a page in two languages


@pytest.mark.parametrize("make", KEYED, ids=lambda make: make.__name__)
def test_a_wrong_key_is_an_error_that_does_not_repeat_it(
    store: redis.Redis, tmp_path: Path, make: Callable[[], Case]
) -> None:
    case = make()
    rig = rigged(store, tmp_path, case)
    wrong = f"canary-wrong:{KEY}"
    with served(case.server) as url, pytest.raises(SourceError, match="source_key") as caught:
        items(rig, case, url, wrong)
    assert "canary" not in "".join(traceback.format_exception(caught.value))


def test_prismic_is_listed_in_all_languages_by_the_resync_it_asks_for(
    store: redis.Redis, tmp_path: Path
) -> None:
    case = prismic()
    rig = rigged(store, tmp_path, case)
    for body, headers in case.sent:
        receive(rig, case, body, headers)
    rig.settle()
    assert rig.resyncs.open()

    with served(case.server) as url:
        assert reconcile(rig, items(rig, case, url)).complete
        assert listed(rig) == case.listed
        assert differences(rig, items(rig, case, url)) == set()
    assert not rig.resyncs.open()


def test_a_permalink_that_names_a_wrong_field_deletes_nothing(
    store: redis.Redis, tmp_path: Path
) -> None:
    case = sanity()
    rig = rigged(store, tmp_path, case)
    with served(case.server) as url:
        reconcile(rig, items(rig, case, url))
        wrong = case._replace(connection={"permalinks": {"post": "/blog/{slog}"}})
        (tmp_path / "other").mkdir()
        other = rigged(store, tmp_path / "other", wrong)
        found = items(other, wrong, url)
        assert isinstance(found[-1], RecordRefusal)
        assert found[-1].whole
        done = reconcile(other, found)
    assert "slog" in done.incomplete
    assert listed(rig) == case.listed


def test_without_permalinks_the_setting_is_named(store: redis.Redis, tmp_path: Path) -> None:
    case = sanity()._replace(connection={})
    rig = rigged(store, tmp_path, case)
    with pytest.raises(SourceError, match=r"add permalinks to sources\.sanity"):
        items(rig, case, "http://127.0.0.1:9")
