"""Webhooks of a CMS and a reconcile with its interface make the same pages, with the same ids."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis

from shared.errors import SourceError
from tests.integration.reconcile.reconciled import differences, reconcile
from tests.integration.rig import BASE, Rig
from tests.unit.webhook.sources.delivering import SECRET, delivered, signed
from tests.unit.worker.sources.cms import served
from tests.unit.worker.sources.hosted import (
    DAY,
    KEY,
    Contentful,
    Drupal,
    Hosted,
    Prismic,
    Sanity,
    Shopify,
    Storyblok,
)
from webhook.sources.adapter import AdapterContext
from worker.sources import Item, RecordRefusal, SourceOptions, read


class Case(NamedTuple):
    """A CMS with public pages and drafts, its connection, and what its webhooks sent about it."""

    name: str
    server: Hosted
    connection: dict[str, Any]
    sent: list[tuple[Any, dict[str, str]]]
    listed: set[str]
    key: str = KEY
    gone: tuple[Any, dict[str, str]] = ({}, {})
    """A delivery by which the first page went; it names its id only."""
    first: str = ""


def contentful() -> Case:
    def entry(number: int, kind: str = "post", **fields: Any) -> dict[str, Any]:
        kind_of = {"sys": {"type": "Link", "linkType": "ContentType", "id": kind}}
        sys = {"id": f"e{number}", "type": "Entry", "updatedAt": DAY, "contentType": kind_of}
        return {"sys": sys, "fields": fields}

    server = Contentful()
    server.rows = [entry(n, slug={"en-US": f"p{n}", "de": f"s{n}"}) for n in range(5)]
    server.rows += [entry(7, slug={"en-US": "p7"}), entry(8, "author", name={"en-US": "Jane"})]
    topic = {"x-contentful-topic": "ContentManagement.Entry.publish"}
    tombstone = {"sys": {"id": "e0", "type": "DeletedEntry"}}
    connection = {
        "locales": ["en-US", "de"], "sections": {"post": "posts"},
        "permalinks": {"post": "/{locale}/blog/{slug}", "post:en-US": "/blog/{slug}"},
    }  # fmt: skip
    return Case(
        "contentful", server, connection, [(row, topic) for row in server.rows],
        {f"blog/p{n}" for n in (0, 1, 2, 3, 4, 7)} | {f"de/blog/s{n}" for n in range(5)},
        gone=(tombstone, {"x-contentful-topic": "ContentManagement.Entry.unpublish"}),
        first="blog/p0",
    )  # fmt: skip


def sanity() -> Case:
    def document(number: int, **members: Any) -> dict[str, Any]:
        said = {"_id": f"d{number:04}", "_type": "post", "_updatedAt": DAY, "publishedAt": DAY}
        return said | {"slug": f"p{number}", "title": f"Post {number}"} | members

    server = Sanity()
    server.rows = [document(n) for n in range(1002)]
    server.rows += [document(7000, noindex=True), document(7001, canonical="https://x.example/")]
    draft = document(1, slug="p1-soon") | {"_id": "drafts.d0001"}
    server.rows.append(draft)
    changed = {"sanity-operation": "update"}
    return Case(
        "sanity", server, {"permalinks": {"post": "/blog/{slug}"}},
        [(row, changed) for row in server.rows], {f"blog/p{n}" for n in range(1002)},
        gone=({"_id": "d0000", "_type": "post"}, {"sanity-operation": "delete"}), first="blog/p0",
    )  # fmt: skip


def storyblok() -> Case:
    def link(number: int, slug: str, *, public: bool = True, folder: bool = False) -> Any:
        return {
            "id": number, "uuid": f"u{number}", "slug": slug, "name": slug, "is_folder": folder,
            "published": public, "real_path": f"/{slug}", "published_at": DAY, "created_at": DAY,
        }  # fmt: skip

    server = Storyblok()
    server.rows = [link(n, f"blog/p{n}") for n in range(1001)]
    server.rows += [link(2000, "blog", public=False, folder=True), link(2001, "x", public=False)]
    server.rows.append(link(2002, "home"))
    public = [row for row in server.rows if row["published"]]
    sent = [
        ({"action": "published", "story_id": row["id"], "full_slug": row["slug"]}, {})
        for row in public
    ]
    return Case(
        "storyblok", server, {"permalinks": {"story:home": "/"}}, sent,
        {f"blog/p{n}" for n in range(1001)} | {""},
        gone=({"action": "unpublished", "story_id": 0}, {}), first="blog/p0",
    )  # fmt: skip


def shopify() -> Case:
    def product(number: int, **members: Any) -> dict[str, Any]:
        said = {"legacyResourceId": str(number), "handle": f"mug{number}", "title": "Mug"}
        image = {"preview": {"image": {"url": f"https://cdn.shopify.com/{number}.jpg?v=1"}}}
        said |= {"status": "ACTIVE", "updatedAt": "2026-11-20T15:00:00Z", "featuredMedia": image}
        return said | {"publishedAt": "2026-01-01T00:00:00Z"} | members

    server = Shopify()
    server.objects = {
        "products": [*map(product, range(1, 6)), product(9, status="ARCHIVED")],
        "collections": [{"legacyResourceId": "1", "handle": "new", "title": "New", "image": None}],
    }
    sent: list[tuple[Any, dict[str, str]]] = [
        (
            {
                "id": n, "handle": f"mug{n}", "title": "Mug", "status": "active",
                "updated_at": "2026-11-20T10:00:00-05:00", "published_at": "2026-01-01T00:00:00Z",
                "images": [{"src": f"https://cdn.shopify.com/{n}-{i}.jpg"} for i in range(3)],
            },
            {"x-shopify-topic": "products/update"},
        )
        for n in range(1, 6)
    ]  # fmt: skip
    new = {"id": 1, "handle": "new", "title": "New", "published_at": "2026-01-01T00:00:00Z"}
    sent.append((new, {"x-shopify-topic": "collections/create"}))
    return Case(
        "shopify", server, {}, sent,
        {f"products/mug{n}" for n in range(1, 6)} | {"collections/new"},
        gone=({"id": 1}, {"x-shopify-topic": "products/delete"}), first="products/mug1",
    )  # fmt: skip


def drupal() -> Case:
    def node(number: int, alias: str | None, **members: Any) -> dict[str, Any]:
        said = {
            "drupal_internal__nid": number, "langcode": "en", "status": True, "created": DAY,
            "changed": "2026-11-20T10:00:00+00:00", "path": {"alias": alias, "langcode": "en"},
        }  # fmt: skip
        return {"type": "node--article", "id": f"u{number}", "attributes": said | members}

    server = Drupal()
    server.rows = [node(n, f"/blog/p{n}") for n in range(1, 6)]
    server.rows += [node(8, None), node(9, "/draft", status=False)]
    german = {"langcode": "de", "path": {"alias": "/blog/s1", "langcode": "de"}}
    server.rows[0]["translations"] = {"de": german}
    updated = {"x-drupal-event": "entity:node:update"}
    shown = [Drupal._in(row, "en") for row in server.rows] + [Drupal._in(server.rows[0], "de")]
    return Case(
        "drupal", server, {"locales": ["de"], "permalinks": {"article:de": "/de{path.alias}"}},
        [({"data": row}, updated) for row in shown],
        {f"blog/p{n}" for n in range(1, 6)} | {"node/8", "de/blog/s1"}, key=f"reader:{KEY}",
        gone=({"data": shown[0]}, {"x-drupal-event": "entity:node:delete"}), first="blog/p1",
    )  # fmt: skip


CASES: list[Callable[[], Case]] = [contentful, sanity, storyblok, shopify, drupal]
everywhere = pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)


def rigged(store: redis.Redis, tmp_path: Path, case: Case, **more: Any) -> Rig:
    (tmp_path / "public").mkdir()
    connection = {"secret": SECRET, **case.connection}
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
        del (server.objects["products"] if isinstance(server, Shopify) else server.rows)[0]
        reconcile(rig, items(rig, case, url))
        assert case.first not in listed(rig)
        assert len(listed(rig)) >= len(case.listed) - 2  # a page in two languages


@everywhere
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
    def document(number: int, lang: str, **members: Any) -> dict[str, Any]:
        said = {"id": f"{lang}{number}", "uid": f"p{number}", "type": "post", "lang": lang}
        return said | {"last_publication_date": "2026-11-20T10:00:00+0000", "data": {}} | members

    server = Prismic()
    server.rows = [document(n, lang) for n in range(3) for lang in ("en-us", "de-de")]
    server.rows += [document(9, "en-us", type="menu")]
    case = Case("prismic", server, {"permalinks": {"post": "/{lang}/blog/{uid}"}}, [], set())
    rig = rigged(store, tmp_path, case)
    receive(rig, case, {"type": "api-update", "documents": ["en-us0"]}, {})
    rig.settle()
    assert rig.resyncs.open()

    with served(server) as url:
        assert reconcile(rig, items(rig, case, url)).complete
        assert listed(rig) == {f"{lang}/blog/p{n}" for n in range(3) for lang in ("en-us", "de-de")}
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
