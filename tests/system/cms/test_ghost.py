"""A year of an editor's work in a running Ghost: the sitemap is what its Content API shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.system.cms.desk import Desk
from tests.system.cms.ghost import FIVE, Ghost

pytestmark = [pytest.mark.cms_ghost, pytest.mark.timeout(3_600)]

SITE = "site.changed"
PUBLISHED = ["post.published", SITE]
EDITED = ["post.published.edited", SITE]
UNPUBLISHED = ["post.unpublished", SITE]
DELETED = ["post.unpublished", "post.deleted", SITE]
ELSEWHERE = "https://www.example.org/alpha/"


def test_a_year_of_a_ghost_editor(ghost: tuple[Desk, Ghost]) -> None:
    desk, cms = ghost
    public = cms.public
    desk.repair(public())  # what was there before sitemapd came

    with desk.step("a draft", public, []):
        alpha = cms.create("Alpha")
    with desk.step("a draft is edited", public, []):
        cms.edit(alpha, title="Alpha!")
    with desk.step("published", public, PUBLISHED):
        cms.edit(alpha, status="published")
    with desk.step("edited", public, EDITED):
        cms.edit(alpha, title="Alpha, again")
    with desk.step("saved as it is", public, []):
        cms.edit(alpha)
    with desk.step("a new slug", public, EDITED):
        cms.edit(alpha, slug="alpha-two")
    with desk.step("for members only", public, EDITED):
        cms.edit(alpha, visibility="members")
    with desk.step("its canonical address is elsewhere", public, EDITED):
        cms.edit(alpha, canonical_url=ELSEWHERE)
    with desk.step("it is here again", public, EDITED):
        cms.edit(alpha, canonical_url=None)
    with desk.step("unpublished", public, UNPUBLISHED):
        cms.edit(alpha, status="draft")
    with desk.step("a new slug while it is a draft", public, []):
        cms.edit(alpha, slug="alpha-three")
    with desk.step("published again", public, PUBLISHED):
        cms.edit(alpha, status="published")

    with desk.step("published at once", public, PUBLISHED):
        beta = cms.create("Beta", status="published")
    with desk.step("the first goes", public, DELETED):
        cms.delete(alpha)
    with desk.step("its slug goes to the second", public, EDITED):
        cms.edit(beta, slug="alpha-three")
    gone = ["post.deleted", SITE] if cms.release == FIVE else ["post.deleted"]
    with desk.step("a draft is deleted", public, gone):
        cms.delete(cms.create("Never seen"))
    with desk.step("only sent by mail", public, []):
        cms.create("Letter", email_only=True)

    with desk.step("a page", public, ["page.published", SITE]):
        about = cms.create("About", "pages", status="published")
    with desk.step("a page gets a new slug", public, ["page.published.edited", SITE]):
        cms.edit(about, "pages", slug="about-us")
    with desk.step("a page is unpublished", public, ["page.unpublished", SITE]):
        cms.edit(about, "pages", status="draft")
    with desk.step("a page is published again", public, ["page.published", SITE]):
        cms.edit(about, "pages", status="published")

    due = datetime.now(UTC) + timedelta(seconds=10)
    with desk.step("scheduled, and Ghost publishes it", public, PUBLISHED):
        cms.create("Gamma", status="scheduled", published_at=due.isoformat())

    with desk.step("a post with a new tag", public, [*PUBLISHED, "tag.added"]):
        delta = cms.create("Delta", status="published", tags=[{"name": "Sport"}])
    with desk.step("the tag gets a new slug", public, ["tag.edited", SITE]):
        cms.edit(cms.tag("sport"), "tags", slug="sports")
    # A tag without posts has no page, and Ghost tells of the post alone.
    with desk.missed("the last post of a tag loses it", public, EDITED):
        cms.edit(delta, tags=[])
    with desk.step("the tag is deleted", public, ["tag.deleted", SITE]):
        cms.delete(cms.tag("sports"), "tags")

    # Ghost says of a bulk action that the site changed, not what: a reconcile finds it.
    with desk.missed("unpublished in bulk", public, [SITE]):
        cms.bulk_unpublish(beta, delta)
    with desk.step("published again", public, PUBLISHED):
        cms.edit(beta, status="published")
    with desk.missed("deleted in bulk", public, [SITE]):
        cms.bulk_delete(beta, delta)

    # One attempt is all that Ghost makes: what was missed is found by a reconcile.
    missed = [*PUBLISHED, *PUBLISHED, "page.published.edited", SITE]
    with desk.away("sitemapd is down", public, missed):
        zeta, eta = (cms.create(title, status="published") for title in ("Zeta", "Eta"))
        cms.edit(about, "pages", slug="about-you")
    with desk.step("what was repaired is edited", public, EDITED):
        cms.edit(zeta, title="Zeta, again")
    with desk.step("what was repaired moves", public, EDITED):
        cms.edit(zeta, slug="zeta-two")
    with desk.step("what was repaired is deleted", public, DELETED):
        cms.delete(zeta)
    # What came by an import has an address and no id: it goes where a permalink tells that too.
    with desk.missed("what was repaired is deleted at once, a post", public, DELETED):
        cms.delete(eta)
    gone = ["page.unpublished", "page.deleted", SITE]
    with desk.step("what was repaired is deleted at once, a page", public, gone):
        cms.delete(about, "pages")
    desk.done()
