"""Adapter for Payload 3, with hooks of some 40 lines for its collections (WEBHOOKS 1.9).

The arguments of a hook do not show the state of the page: a draft saved over a published page and
an unpublished page look alike, and languages that were not edited are missing. So the hook reads
the document again after the transaction, in all languages, as a visitor would see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shared.cms import payload
from shared.cms.fields import ident, mapping, text
from webhook.sources import standard
from webhook.sources.adapter import JSON, AdapterContext, Delivery, IgnoredDelivery, Outcome
from webhook.sources.guides import RUN, Guide, documented, literal
from webhook.sources.payload_fields import document
from webhook.sources.standard import verify

__all__ = ["CLIENT", "GUIDE", "MEDIA_TYPES", "NAME", "translate", "verify"]

NAME = "payload"
MEDIA_TYPES = JSON & standard.MEDIA_TYPES

CLIENT = """\
// sitemapd.ts: hooks: { afterChange: [changed], afterDelete: [deleted] } in each collection
import { createHmac, randomUUID } from 'node:crypto'

const pending = new Set<Promise<void>>()
// For scripts: `await sent()` before process.exit(), which cuts off what is under way.
export const sent = () => Promise.all(pending)

const send = async (event: object) => {
  const { SITEMAPD_URL, SITEMAPD_SECRET } = process.env
  if (!SITEMAPD_URL || !SITEMAPD_SECRET) throw Error('SITEMAPD_URL or SITEMAPD_SECRET is not set')
  const body = JSON.stringify(event), id = randomUUID(), now = Math.floor(Date.now() / 1000)
  const key = Buffer.from(SITEMAPD_SECRET.replace('whsec_', ''), 'base64')
  const mac = createHmac('sha256', key).update(`${id}.${now}.${body}`).digest('base64')
  const answer = await fetch(SITEMAPD_URL, { method: 'POST', body, headers: {
    'content-type': 'application/json', 'webhook-id': id, 'webhook-timestamp': String(now),
    'webhook-signature': `v1,${mac}` } })
  if (!answer.ok) throw Error(`${answer.status} ${await answer.text()}`)
}
// Hooks run within the transaction: what it leaves is there once it is over.
const over = async (req: any) => {
  let ms = 50
  do await new Promise((done) => setTimeout(done, ms *= 2))
  while (await req.transactionID && ms < 30_000)
}
const later = (req: any, event: () => Promise<object>) => {
  const done: Promise<void> = over(req).then(event).then(send)
    .catch((error) => req.payload.logger.error(`sitemapd: ${error.message} ${error.cause ?? ''}`))
    .finally(() => pending.delete(done))
  pending.add(done)
}
const about = (doc: any) => ({ id: doc.id, slug: doc.slug, updatedAt: doc.updatedAt,
  publishedAt: doc.publishedAt, title: doc.title, _status: doc._status })

export const changed = ({ doc: { id }, req, collection: { slug } }: any) =>
  later(req, async () => {
    const doc = await req.payload.findByID({ collection: slug, id, locale: 'all', draft: false,
      depth: 0, disableErrors: true })
    const [operation, told] = doc ? ['change', about(doc)] : ['delete', { id }]
    return { operation, collection: slug, doc: told }
  })
export const deleted = ({ doc: { id }, req, collection: { slug } }: any) =>
  later(req, async () => ({ operation: 'delete', collection: slug, doc: { id } }))
"""

GUIDE = Guide(
    title="Payload 3",
    credential="a Standard Webhooks secret of this site; `sitemapd secret` makes one",
    place="SITEMAPD_SECRET in the environment of Payload",
    steps=f"""\
1. In the environment:  SITEMAPD_URL={{address}}  SITEMAPD_SECRET={{secret}}
2. Add this file, and its hooks to each collection of pages:

{literal(CLIENT)}
3. In sitemapd.toml:  permalinks = {{{{ posts = "/blog/{{{{slug}}}}" }}}}
   With several languages, each of them and an address that tells them apart:
   locales = ["en", "de"]
   permalinks = {{{{ posts = "/{{{{locale}}}}/blog/{{{{slug}}}}" }}}}""",
    sends="the slug, status and dates of a document as visitors have it, in all languages",
    caveats="nothing is repeated; what was refused is an error in the log of Payload; a rollback"
    " is told as what is there after it; a function that is frozen with its answer sends nothing",
    evidence={
        "file, environment, deliveries": RUN,
        "functions that are frozen": documented(
            "https://vercel.com/docs/functions/functions-api-reference/vercel-functions-package"
        ),
    },
    config='permalinks = { posts = "/blog/{slug}" }',
)


def translate(hook: Delivery, config: AdapterContext) -> Iterable[Outcome]:
    """Yield a document as visitors see it, in each language; or its deletes in all of them."""
    said = document(hook.body)
    operation, doc = text(said, "operation"), mapping(said.get("doc"))
    kind, number = text(said, "collection"), ident(doc, "id")
    known = config.connection.locales
    if number is None or not kind or operation not in {"change", "delete"}:
        yield IgnoredDelivery("not what the hooks of `sitemapd connect payload` send")
        return
    if operation == "change" and not known and isinstance(doc.get("slug"), Mapping):
        yield IgnoredDelivery(
            f'{kind}: its slug differs by language: add locales = ["en", ...] to sources.{NAME}'
        )
        return
    for locale, page in payload.versions(kind, number, doc, known):
        if operation == "delete" or page is None:
            yield config.gone(kind, number, (kind, locale))
        else:
            yield from config.page(page)
