"""Payload 3, by hooks of some 30 lines that go into its collections (WEBHOOKS 1.9).

A draft saved over a published page and a page that is unpublished look alike in `afterChange`; only
the request tells them apart, so the hook sends that, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from webhook.sources import standard
from webhook.sources.contract import JSON, Config, Guide, Hook, Ignored, Outcome, Page, literal
from webhook.sources.reading import date, document, ident, mapping, text
from webhook.sources.standard import verify

__all__ = ["CLIENT", "GUIDE", "MEDIA_TYPES", "NAME", "translate", "verify"]

NAME = "payload"
MEDIA_TYPES = JSON & standard.MEDIA_TYPES

CLIENT = """\
// sitemapd.ts: hooks: { afterChange: [changed], afterDelete: [deleted] } in each collection
import { createHmac, randomUUID } from 'node:crypto'
const { SITEMAPD_URL, SITEMAPD_SECRET } = process.env

const send = (event: object) => setTimeout(async () => {  // once the transaction is over
  const body = JSON.stringify(event), id = randomUUID(), now = Math.floor(Date.now() / 1000)
  const key = Buffer.from(SITEMAPD_SECRET!.replace('whsec_', ''), 'base64')
  const mac = createHmac('sha256', key).update(`${id}.${now}.${body}`).digest('base64')
  await fetch(SITEMAPD_URL!, { method: 'POST', body, headers: {
    'content-type': 'application/json', 'webhook-id': id, 'webhook-timestamp': String(now),
    'webhook-signature': `v1,${mac}` } }).catch(console.error)
}, 500)
const about = (doc: any) => ({ id: doc.id, slug: doc.slug, updatedAt: doc.updatedAt,
  publishedAt: doc.publishedAt, title: doc.title, _status: doc._status })

export const changed = ({ doc, req, collection }: any) => {
  const draft = req.query?.draft === 'true' || req.query?.draft === true
  send({ operation: 'change', collection: collection.slug, locale: req.locale, draft,
    doc: about(doc) })
}
export const deleted = ({ doc, collection }: any) =>
  send({ operation: 'delete', collection: collection.slug, doc: { id: doc.id } })
"""

GUIDE = Guide(
    title="Payload 3",
    credential="a Standard Webhooks secret of this site; `sitemapd secret` makes one",
    steps=f"""\
1. In the environment:  SITEMAPD_URL={{address}}  SITEMAPD_SECRET={{secret}}
2. Add this file, and its hooks to each collection of pages:

{literal(CLIENT)}
3. In sitemapd.toml:  permalinks = {{{{ posts = "/{{{{locale}}}}/blog/{{{{slug}}}}" }}}}
   and every language, if there are several:  locales = ["en", "de"]""",
    sends="the slug, status and dates of a document that was saved",
    caveats="hooks run within a transaction, which may be rolled back: half a second later it is"
    " over in all likelihood; an event carries only the language that was edited",
    config='permalinks = { posts = "/blog/{slug}" }',
)


def translate(hook: Hook, config: Config) -> Iterable[Outcome]:
    """A document as it was saved; what is deleted goes in every language."""
    said = document(hook.body)
    operation, doc = text(said, "operation"), mapping(said.get("doc"))
    kind, number = text(said, "collection"), ident(doc, "id")
    # Where one language is configured at most, a document is one page, whatever its request says.
    several = len(config.connection.locales) > 1
    locale = text(said, "locale")
    if number is None or not kind or operation not in {"change", "delete"}:
        yield Ignored("not what the hooks of `sitemapd connect payload` send")
    elif operation == "delete":
        for each in config.connection.locales if several else ("",):
            yield config.gone(kind, number, (kind, each))
    elif said.get("draft") is True:
        yield Ignored("a draft: the page stays as it is")
    elif text(doc, "_status") not in {"", "published"}:
        yield config.gone(kind, number, (kind, locale if several else ""))
    else:
        members = {
            "lastmod": date(doc, "updatedAt"),
            "published": date(doc, "publishedAt"),
            "title": text(doc, "title"),
        }
        owner = (kind, locale if several else "")
        fields = {**doc, "locale": locale}
        yield from config.page(Page(kind, number, fields, locale, members=members, owner=owner))
