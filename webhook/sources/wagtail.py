"""Adapter for Wagtail, with a small signal client for the project (WEBHOOKS 1.8).

Only the client knows which pages are public and at which URL: `page_published` is sent for
scheduled pages as well, and a page that moves takes its descendants along without a signal.
"""

from __future__ import annotations

from collections.abc import Iterable

from webhook.sources import standard
from webhook.sources.adapter import AdapterContext, Delivery, Outcome
from webhook.sources.guides import RUN, Guide, literal
from webhook.sources.standard import MEDIA_TYPES, verify

__all__ = ["CLIENT", "GUIDE", "MEDIA_TYPES", "NAME", "translate", "verify"]

NAME = "wagtail"

CLIENT = """\
# sitemapd_client.py, beside an app of yours; import it in that app's AppConfig.ready().
import base64, hmac, json, time, urllib.request, uuid
from django.conf import settings  # SITEMAPD = ("https://.../hooks/wagtail", "whsec_...")
from django.db import transaction
from django.db.models.signals import post_delete
from wagtail import signals
from wagtail.models import Page

def listed(pk):
    page = Page.objects.filter(pk=pk).first()
    if page and page.live and page.full_url and not page.get_view_restrictions().exists():
        at = page.last_published_at
        return {"type": "upsert", "id": pk, "loc": page.full_url,
                **({"lastmod": at.isoformat(timespec="seconds")} if at else {})}
    return gone(pk, page and page.full_url)

def gone(pk, loc):  # an import knows pages by address alone
    return {"type": "delete", "id": pk, **({"loc": loc} if loc else {})}

def send(make):
    def post():
        events = make()
        for start in range(0, len(events), 500):  # a delivery holds 1,000 at most
            deliver(json.dumps(events[start:start + 500]).encode())
    transaction.on_commit(post, robust=True)

def deliver(body):
    address, secret = settings.SITEMAPD
    ident, now = uuid.uuid4().hex, str(int(time.time()))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = base64.b64encode(hmac.digest(key, f"{ident}.{now}.".encode() + body, "sha256"))
    urllib.request.urlopen(urllib.request.Request(address, body, {
        "content-type": "application/json", "webhook-id": ident, "webhook-timestamp": now,
        "webhook-signature": "v1," + mac.decode()}), timeout=5)

def changed(sender, instance, **_):
    send(lambda: [listed(instance.pk)])

def moved(sender, instance, **_):
    def family():
        page = Page.objects.get(pk=instance.pk)
        return [listed(each.pk) for each in page.get_descendants(inclusive=True)]
    send(family)

def deleted(sender, instance, **_):
    if isinstance(instance, Page):
        event = gone(instance.pk, instance.full_url)
        send(lambda: [event])

for signal, receiver in (
    (signals.page_published, changed), (signals.page_unpublished, changed),
    (signals.page_slug_changed, moved), (signals.post_page_move, moved), (post_delete, deleted),
):
    signal.connect(receiver, weak=False)
"""

GUIDE = Guide(
    title="Wagtail",
    credential="a Standard Webhooks secret of this site; `sitemapd secret` makes one",
    place="the secret in SITEMAPD of the settings",
    steps=f"""\
1. In the settings of the project:  SITEMAPD = ("{{address}}", "{{secret}}")
2. Add this file and import it in AppConfig.ready():

{literal(CLIENT)}""",
    sends="one event for each page published, unpublished or deleted; all descendants of one that"
    " moved",
    caveats="nothing is sent for QuerySet.update(), a Site's host name or a new privacy"
    " restriction: reconcile after these; scheduled pages need Wagtail's publish_scheduled in cron",
    evidence={"file, settings, deliveries": RUN},
)


def translate(hook: Delivery, _config: AdapterContext) -> Iterable[Outcome]:
    """Yield the client's events."""
    return standard.changes(hook)
