"""A year of an editor's work in a running Strapi: the sitemap is what its REST API shows, always.

Scheduled publishing ("releases") is no part of the edition on npm.
"""

from __future__ import annotations

import pytest

from tests.system.cms.desk import Desk
from tests.system.cms.strapi import PRODUCT, Strapi

pytestmark = [pytest.mark.cms_strapi, pytest.mark.timeout(3_600)]

CREATE, UPDATE, PUBLISH = "entry.create", "entry.update", "entry.publish"
UNPUBLISH, DELETE, DISCARD = "entry.unpublish", "entry.delete", "entry.draft-discard"


def test_a_year_of_a_strapi_editor(strapi: tuple[Desk, Strapi]) -> None:
    desk, cms = strapi
    public = cms.public

    with desk.step("a draft", public, [CREATE]):
        alpha = cms.create("alpha")
    with desk.step("a draft is edited", public, [UPDATE]):
        cms.save(alpha, slug="alpha", title="Alpha")
    with desk.step("published", public, [UPDATE, PUBLISH]):
        cms.publish(alpha, slug="alpha", title="Alpha")
    with desk.step("edited, only the draft", public, [UPDATE]):
        cms.save(alpha, slug="alpha", title="Alpha, again")
    with desk.step("a new slug as a draft", public, [UPDATE]):
        cms.save(alpha, slug="alpha-two", title="Alpha, again")
    with desk.step("the new slug is published", public, [UPDATE, PUBLISH]):
        cms.publish(alpha, slug="alpha-two", title="Alpha, again")
    with desk.step("another slug as a draft", public, [UPDATE]):
        cms.save(alpha, slug="alpha-three", title="Alpha, again")
    with desk.step("discarded", public, [DISCARD]):
        cms.discard(alpha)

    with desk.step("a translation, a draft", public, [CREATE]):
        cms.save(alpha, locale="de", slug="alpha-de", title="Alpha auf Deutsch")
    with desk.step("the translation is published", public, [UPDATE, PUBLISH]):
        cms.publish(alpha, locale="de", slug="alpha-de", title="Alpha auf Deutsch")
    with desk.step("the translation is unpublished", public, [UNPUBLISH]):
        cms.unpublish(alpha, locale="de")
    with desk.step("the translation is published again", public, [UPDATE, PUBLISH]):
        cms.publish(alpha, locale="de", slug="alpha-de", title="Alpha auf Deutsch")
    with desk.step("unpublished, the translation stays", public, [UNPUBLISH]):
        cms.unpublish(alpha)
    with desk.step("published again", public, [UPDATE, PUBLISH]):
        cms.publish(alpha, slug="alpha-two", title="Alpha, again")
    with desk.step("the same slug in both languages", public, [UPDATE, PUBLISH]):
        cms.publish(alpha, locale="de", slug="alpha-two", title="Alpha auf Deutsch")

    with desk.step("created and published at once", public, [CREATE, PUBLISH]):
        beta = cms.create("beta", publish=True)
    with desk.step("unpublished in bulk", public, [UNPUBLISH, UNPUBLISH]):
        cms.bulk("Unpublish", alpha, beta)
    with desk.step("published in bulk", public, [PUBLISH, PUBLISH]):
        cms.bulk("Publish", alpha, beta)
    with desk.step("two pages swap their slugs: the first", public, [UPDATE, PUBLISH]):
        cms.publish(alpha, slug="beta-was-here", title="Alpha")
    with desk.step("two pages swap their slugs: the second", public, [UPDATE, PUBLISH]):
        cms.publish(beta, slug="alpha-two", title="Beta")
    with desk.step("two pages swap their slugs: the first again", public, [UPDATE, PUBLISH]):
        cms.publish(alpha, slug="beta", title="Alpha")
    with desk.step("the translation is deleted", public, [DELETE, DELETE]):
        cms.delete(alpha, locale="de")
    with desk.step("a new one is published at once", public, [CREATE, PUBLISH]):
        cms.publish(alpha, locale="de", slug="alpha-neu", title="Alpha auf Deutsch")

    with desk.step("a type without drafts", public, [CREATE]):
        lamp = cms.create("lamp", PRODUCT)
    with desk.step("it is edited", public, [UPDATE]):
        cms.save(lamp, PRODUCT, slug="lamp", title="A lamp")
    with desk.step("it gets a new slug", public, [UPDATE]):
        cms.save(lamp, PRODUCT, slug="desk-lamp", title="A lamp")
    with desk.step("the test button", public, ["trigger-test"]):
        cms.press_test()

    # Strapi sends once, whatever it is told: what was missed is found by a reconcile.
    missed = [CREATE, PUBLISH, CREATE, PUBLISH, UPDATE, PUBLISH, UNPUBLISH]
    with desk.away("sitemapd is down", public, missed):
        gamma, delta = (cms.create(slug, publish=True) for slug in ("gamma", "delta"))
        cms.publish(beta, slug="beta-moved", title="Beta")
        cms.unpublish(alpha, locale="de")
    with desk.step("what was repaired is edited", public, [UPDATE, PUBLISH]):
        cms.publish(gamma, slug="gamma", title="Gamma, again")
    with desk.step("then it moves", public, [UPDATE, PUBLISH]):
        cms.publish(gamma, slug="gamma-two", title="Gamma, again")
    # Strapi does not say where it was: a reconcile with its own interface knew the id.
    with desk.step("what was repaired moves at once", public, [UPDATE, PUBLISH]):
        cms.publish(beta, slug="beta-again", title="Beta")
    with desk.step("what was repaired is unpublished at once", public, [UNPUBLISH]):
        cms.unpublish(delta)

    with desk.step("it is deleted", public, [DELETE]):
        cms.delete(lamp, PRODUCT)
    with desk.step("deleted in all languages", public, [DELETE] * 3):
        cms.delete(alpha, locale="*")
    with desk.step("deleted in bulk", public, [DELETE] * 5):
        cms.bulk("Delete", beta, gamma, delta)
    desk.done()


def test_deliveries_that_overtake_each_other_end_in_what_strapi_shows(
    strapi: tuple[Desk, Strapi],
) -> None:
    """Strapi sends five at a time (WEBHOOKS 1.6); the body says when each was made."""
    desk, cms = strapi
    with desk.step("published", cms.public, [CREATE, PUBLISH]):
        page = cms.create("alpha", publish=True)
    with (
        desk.step("unpublished, published again", cms.public, [UNPUBLISH, UPDATE, PUBLISH]),
        desk.front.overtaking(UNPUBLISH, PUBLISH),
    ):
        cms.unpublish(page)
        cms.publish(page, slug="alpha", title="Alpha")
