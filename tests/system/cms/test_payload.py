"""A year of an editor's work in a running Payload: the sitemap is what its REST interface shows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.system.cms.desk import Desk
from tests.system.cms.payload import PRODUCTS, Payload
from tests.system.driver import wait_until

pytestmark = [pytest.mark.cms_payload, pytest.mark.timeout(3_600)]

CHANGE, DELETE = "change posts", "delete posts"
SHOP, SHOP_DELETE = "change products", "delete products"


def test_a_year_of_a_payload_editor(payload: tuple[Desk, Payload]) -> None:
    desk, cms = payload
    public = cms.public

    with desk.step("a draft", public, [CHANGE]):
        alpha = cms.create("alpha")
    with desk.step("a draft is edited", public, [CHANGE]):
        cms.save(alpha, draft=True, title="Alpha")
    with desk.step("published", public, [CHANGE]):
        cms.publish(alpha)
    with desk.step("edited", public, [CHANGE]):
        cms.publish(alpha, title="Alpha, again")
    with desk.step("a draft is saved over the published page", public, [CHANGE]):
        cms.save(alpha, draft=True, title="Alpha, soon", _status="draft")
    with desk.step("a new slug as a draft", public, [CHANGE]):
        cms.save(alpha, draft=True, slug="alpha-two", _status="draft")
    with desk.step("the new slug is published", public, [CHANGE]):
        cms.publish(alpha, slug="alpha-two")

    with desk.step("a translation is published", public, [CHANGE]):
        cms.publish(alpha, locale="de", slug="alpha-de", title="Alpha auf Deutsch")
    with desk.step("the translation gets a new slug", public, [CHANGE]):
        cms.publish(alpha, locale="de", slug="alpha-neu")
    with desk.step("unpublished, in all languages", public, [CHANGE]):
        cms.save(alpha, _status="draft")
    with desk.step("published again", public, [CHANGE]):
        cms.publish(alpha)
    with desk.step("saved with all languages asked for", public, [CHANGE]):
        cms.publish(alpha, locale="all")
    with desk.step("the same slug in both languages", public, [CHANGE]):
        cms.publish(alpha, locale="de", slug="alpha-two")
    with desk.step("one language loses its slug", public, [CHANGE]):
        cms.publish(alpha, locale="de", slug=None)
    with desk.step("an old version is restored", public, [CHANGE]):
        versions = cms.ask("GET", "posts/versions", sort="createdAt", limit=0, locale="all")
        (wanted,) = [
            one["id"] for one in versions["docs"]
            if one["version"]["slug"] == {"en": "alpha-two", "de": "alpha-two"}
        ]  # fmt: skip
        cms.ask("POST", f"posts/versions/{wanted}")

    with desk.step("created and published at once", public, [CHANGE]):
        beta = cms.create("beta", publish=True)
    with desk.step("duplicated: the copy is a draft", public, [CHANGE]):
        copy = int(cms.ask("POST", f"posts/{beta}/duplicate", {"_status": "draft"})["doc"]["id"])
    with desk.step("two pages swap their slugs: the first", public, [CHANGE]):
        cms.publish(alpha, slug="beta-was-here")
    with desk.step("two pages swap their slugs: the second", public, [CHANGE]):
        cms.publish(beta, slug="alpha-two")
    with desk.step("two pages swap their slugs: the first again", public, [CHANGE]):
        cms.publish(alpha, slug="beta")
    with desk.step("into the trash", public, [DELETE]):
        cms.save(beta, deletedAt=datetime.now(UTC).isoformat())
    with desk.step("out of the trash", public, [CHANGE]):
        cms.save(beta, trash=True, deletedAt=None)
    with desk.step("a draft is deleted", public, [DELETE]):
        cms.ask("DELETE", f"posts/{copy}")
    with desk.step("rolled back after the hook", public, [DELETE]):
        cms.ask("POST", "posts", {"slug": "never", "title": "rolled back", "_status": "published"},
                fails=True)  # fmt: skip

    _by_code(desk, cms)
    with desk.step("unpublished in bulk", public, [CHANGE, CHANGE]):
        cms.ask("PATCH", "posts", {"_status": "draft"}, **{"where[id][in]": f"{alpha},{beta}"})
    with desk.step("published in bulk", public, [CHANGE, CHANGE]):
        cms.ask("PATCH", "posts", {"_status": "published"}, **{"where[id][in]": f"{alpha},{beta}"})
    _shop(desk, cms)

    # The hooks send once: what was missed is found by a reconcile.
    with desk.away("sitemapd is down", public, [CHANGE] * 3):
        gamma = cms.create("gamma", publish=True)
        cms.publish(beta, slug="beta-moved")
        cms.save(alpha, _status="draft")
    with desk.step("what was repaired is edited", public, [CHANGE]):
        cms.publish(gamma, title="Gamma, again")
    with desk.step("then it moves", public, [CHANGE]):
        cms.publish(gamma, slug="gamma-two")
    with desk.step("deleted", public, [DELETE]):
        cms.ask("DELETE", f"posts/{gamma}")
    # A deletion tells the id alone: a reconcile with Payload's own interface knew it.
    with desk.step("deleted in bulk", public, [DELETE, DELETE]):
        cms.ask("DELETE", "posts", **{"where[id][in]": f"{alpha},{beta}"})
    desk.done()


def _by_code(desk: Desk, cms: Payload) -> None:
    """What code of the site does by the local interface, which knows no request."""
    public = cms.public
    with desk.step("by code: published", public, [CHANGE]):
        data = {"slug": "delta", "title": "Delta", "_status": "published"}
        delta = int(cms.local("create", collection="posts", data=data)["id"])
    with desk.step("by code: a draft over the published page", public, [CHANGE]):
        data = {"slug": "delta-soon", "_status": "draft"}
        cms.local("update", collection="posts", id=delta, draft=True, data=data)
    with desk.step("by code: unpublished", public, [CHANGE]):
        cms.local("update", collection="posts", id=delta, data={"_status": "draft"})
    with desk.step("by code: published at a moment that has come", public, [CHANGE]):
        what = {"type": "publish", "doc": {"relationTo": "posts", "value": delta}}
        cms.local("jobs.queue", task="schedulePublish", input=what)
        cms.local("jobs.run")
    with desk.step("by code: deleted", public, [DELETE]):
        cms.local("delete", collection="posts", id=delta)
    with desk.step("by code: in all languages at once", public, [CHANGE]):
        slugs = {"en": "epsilon", "de": "epsilon-de"}
        data = {"slug": slugs, "_status": "published"}
        cms.local("create", collection="posts", locale="all", data=data)
    assert {f"{cms.url}/en/blog/epsilon", f"{cms.url}/de/blog/epsilon-de"} <= desk.listed()
    with desk.step("by a script that ends at once", public, [CHANGE]):
        cms.script("by-script")


def _shop(desk: Desk, cms: Payload) -> None:
    """A collection without drafts, languages and dates of its own."""
    public = cms.public
    with desk.step("a product", public, [SHOP]):
        lamp = cms.create("lamp", kind=PRODUCTS, publish=True)
    with desk.step("it is edited in another language", public, [SHOP]):
        cms.save(lamp, kind=PRODUCTS, locale="de", slug="lamp")
    with desk.step("it gets a new slug", public, [SHOP]):
        cms.save(lamp, kind=PRODUCTS, slug="desk-lamp")
    with desk.step("it is deleted", public, [SHOP_DELETE]):
        cms.ask("DELETE", f"products/{lamp}")


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "sitemapd: SITEMAPD_URL or SITEMAPD_SECRET is not set"),
        ({"SITEMAPD_SECRET": "whsec_d3JvbmcgYW5kIGxvbmcgZW5vdWdo"}, "sitemapd: 401 "),
    ],
    ids=["none", "wrong"],
)
def test_a_secret_that_is_missing_or_wrong_is_said_in_the_log_of_payload_which_lives_on(
    payload: tuple[Desk, Payload], environment: dict[str, str], said: str
) -> None:
    desk, cms = payload
    cms.stop()
    address = {"SITEMAPD_URL": cms.env["SITEMAPD_URL"]} if environment else {}
    cms.begin({**address, **environment})

    cms.create("alpha", publish=True)

    wait_until(lambda: said in cms.log.read_text(), said)
    assert cms.public() == {f"{cms.url}/en/blog/alpha"}
    assert desk.listed() == set()
