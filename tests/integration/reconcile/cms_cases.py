"""CMSes with public pages and drafts, and what their webhooks sent about these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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
from tests.unit.worker.sources.self_hosted import Directus, Payload, Strapi, Wagtail

BASE = "https://www.example.com/"


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


def strapi() -> Case:
    def entry(number: int, locale: str = "en", *, public: bool = True) -> dict[str, Any]:
        return {
            "id": number * 7, "documentId": f"doc{number}", "slug": f"p{number}", "locale": locale,
            "updatedAt": DAY, "publishedAt": DAY if public else None,
        }  # fmt: skip

    server = Strapi()
    server.part = 3  # documents of two languages lie across the ends of parts
    server.rows = [entry(n, locale) for n in range(5) for locale in ("en", "de")]
    server.rows.append(entry(9, public=False))
    sent = [
        ({"event": "entry.publish", "model": "article", "createdAt": DAY, "entry": row}, {})
        for row in server.rows
        if row["publishedAt"]
    ]
    gone = {"event": "entry.unpublish", "model": "article", "entry": server.rows[0]}
    return Case(
        "strapi", server, {"permalinks": {"article": "/{locale}/blog/{slug}"}}, sent,
        {f"{locale}/blog/p{n}" for n in range(5) for locale in ("en", "de")},
        gone=(gone, {}), first="en/blog/p0",
    )  # fmt: skip


def wagtail(*, dated: bool = True) -> Case:
    def page(number: int) -> dict[str, Any]:
        meta = {"html_url": f"{BASE}p{number}/"}
        return {"id": number, "meta": meta, "last_published_at": "2026-11-20T11:00:00.123+01:00"}

    server = Wagtail(dated=dated)
    server.rows = [page(n) for n in range(1, 46)]
    sent: list[tuple[Any, dict[str, str]]] = [
        (
            {
                "type": "upsert", "id": row["id"], "loc": row["meta"]["html_url"],
                "lastmod": "2026-11-20T10:00:00+00:00",
            },
            {},
        )
        for row in server.rows
    ]  # fmt: skip
    gone = {"type": "delete", "id": 1}
    return Case(
        "wagtail", server, {}, sent, {f"p{n}/" for n in range(1, 46)}, key="", gone=(gone, {}),
        first="p1/",
    )  # fmt: skip


def wagtail_without_dates() -> Case:
    return wagtail(dated=False)


def directus() -> Case:
    def item(number: int, status: str = "published") -> dict[str, Any]:
        said = {"id": number, "status": status, "slug": f"p{number}", "body": "..."}
        return said | {"date_created": DAY, "date_updated": None}

    server = Directus()
    articles = [item(n) for n in range(1, 6)] + [item(9, "draft")]
    notes = [{"code": f"n-{n}", "body": ""} for n in range(5)]
    server.collections = {
        "articles": ("id", "integer", articles), "notes": ("code", "string", notes)
    }  # fmt: skip
    sent = [
        (
            {
                "trigger": {"event": f"{kind}.items.create", "collection": kind, "key": key},
                "items": [row | {"id": key}],
            },
            {},
        )
        for kind, name, rows in (("articles", "id", articles), ("notes", "code", notes))
        for row in rows
        for key in [row[name]]
    ]
    trigger = {"event": "articles.items.delete", "collection": "articles", "keys": [1]}
    places = {"articles": "/blog/{slug}", "notes": "/notes/{id}"}
    return Case(
        "directus", server, {"permalinks": places}, sent,
        {f"blog/p{n}" for n in range(1, 6)} | {f"notes/n-{n}" for n in range(5)},
        gone=({"trigger": trigger}, {}), first="blog/p1",
    )  # fmt: skip


def payload() -> Case:
    def doc(number: int, status: str = "published", **slugs: str) -> dict[str, Any]:
        said = {"id": number, "slug": slugs, "updatedAt": DAY, "_status": status}
        return said | {"title": {"en": f"Post {number}"}}

    server = Payload()
    server.rows = [doc(n, en=f"p{n}", de=f"s{n}") for n in range(1, 6)]
    server.rows += [doc(8, en="p8"), doc(9, "draft", en="p9")]
    sent: list[tuple[Any, dict[str, str]]] = [
        ({"operation": "change", "collection": "posts", "doc": row}, {}) for row in server.rows
    ]
    gone = {"operation": "delete", "collection": "posts", "doc": {"id": 1}}
    connection = {"locales": ["en", "de"], "permalinks": {"posts": "/{locale}/blog/{slug}"}}
    return Case(
        "payload", server, connection, sent,
        {f"en/blog/p{n}" for n in (1, 2, 3, 4, 5, 8)} | {f"de/blog/s{n}" for n in range(1, 6)},
        key=f"users:{KEY}", gone=(gone, {}), first="en/blog/p1",
    )  # fmt: skip


def prismic() -> Case:
    """Its deliveries name no page: they ask for a resync."""

    def document(number: int, lang: str, **members: Any) -> dict[str, Any]:
        said = {"id": f"{lang}{number}", "uid": f"p{number}", "type": "post", "lang": lang}
        return said | {"last_publication_date": "2026-11-20T10:00:00+0000", "data": {}} | members

    server = Prismic()
    server.rows = [document(n, lang) for n in range(3) for lang in ("en-us", "de-de")]
    server.rows += [document(9, "en-us", type="menu")]
    return Case(
        "prismic", server, {"permalinks": {"post": "/{lang}/blog/{uid}"}},
        [({"type": "api-update", "documents": ["en-us0"]}, {})],
        {f"{lang}/blog/p{n}" for n in range(3) for lang in ("en-us", "de-de")},
    )  # fmt: skip


CASES: list[Callable[[], Case]] = [
    strapi, wagtail, wagtail_without_dates, directus, payload, contentful, sanity, storyblok,
    shopify, drupal,
]  # fmt: skip
