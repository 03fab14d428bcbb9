"""A year of an editor's work in a running Wagtail: the sitemap is what Wagtail shows, always."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.system.cms.desk import Desk
from tests.system.cms.wagtail import Wagtail
from tests.system.driver import wait_until

pytestmark = [pytest.mark.cms_wagtail, pytest.mark.timeout(3_600)]

UP, GONE = "upsert", "delete"
GERMAN = 2


def soon() -> tuple[datetime, str]:
    """A moment that has not come when a form is sent on a busy machine, and how a form says it."""
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=15)
    return due, due.strftime("%Y-%m-%d %H:%M:%S")


def passes(due: datetime) -> None:
    wait_until(lambda: datetime.now(UTC) > due, "the moment passes")


def test_a_year_of_a_wagtail_editor(wagtail: tuple[Desk, Wagtail]) -> None:
    desk, cms = wagtail
    public = cms.public
    home = int(cms.one("home")["id"])
    desk.repair(public())  # what was there before sitemapd came

    with desk.step("a draft", public, []):
        alpha = cms.create(home, "alpha")
    with desk.step("a draft is edited", public, []):
        cms.edit(alpha, "alpha", publish=False, title="Alpha!")
    with desk.step("published", public, [UP]):
        cms.edit(alpha, "alpha")
    with desk.step("edited", public, [UP]):
        cms.edit(alpha, "alpha", title="Alpha, again")
    with desk.step("a child, published at once", public, [UP]):
        beta = cms.create(alpha, "beta", publish=True)
    with desk.step("another section", public, [UP]):
        delta = cms.create(home, "delta", publish=True)
    with desk.step("a new slug as a draft", public, []):
        cms.edit(alpha, "alpha-two", publish=False)
    with desk.step("a new slug takes the child along", public, [f"{UP} {UP}", UP]):
        cms.edit(alpha, "alpha-two")
    with desk.step("moved, the child too", public, [f"{UP} {UP}"]):
        cms.move(alpha, delta)
    with desk.step("unpublished, the child stays", public, [GONE]):
        cms.unpublish(alpha)
    with desk.step("published again", public, [UP]):
        cms.edit(alpha, "alpha-two")
    with desk.step("unpublished with all below", public, [GONE, GONE]):
        cms.unpublish(alpha, with_children=True)
    with desk.step("moved while not public", public, [f"{GONE} {GONE}"]):
        cms.move(alpha, home)
    with desk.step("published in bulk", public, [UP, UP]):
        cms.bulk("publish", alpha, beta)

    due, said = soon()
    with desk.step("scheduled", public, [GONE]):
        epsilon = cms.create(home, "epsilon", publish=True, go_live_at=said)
    passes(due)
    with desk.step("cron publishes it", public, [UP]):
        cms.manage("publish_scheduled")
    due, said = soon()
    with desk.step("it is to expire", public, [UP]):
        cms.edit(epsilon, "epsilon", expire_at=said)
    passes(due)
    with desk.step("cron takes it off", public, [GONE]):
        cms.manage("publish_scheduled")

    with desk.step("copied and published", public, [UP]):
        cms.copy(beta, home, "beta-copy")
    with desk.step("moved in bulk", public, [f"{UP} {UP}"]):
        cms.bulk("move", alpha, chooser=str(delta))
    with desk.step("unpublished in bulk, with all below", public, [GONE, GONE, GONE]):
        cms.bulk("unpublish", alpha, beta, include_descendants="on")
    with desk.step("published in bulk once more", public, [UP, UP]):
        cms.bulk("publish", alpha, beta)

    with desk.step("the home page is translated: a draft", public, []):
        cms.translate(home, GERMAN)
    with desk.step("a page is translated: a draft", public, []):
        cms.translate(delta, GERMAN)
    german_home, german = (cms.translation(page, "de") for page in (home, delta))
    with desk.step("the German home page is published", public, [UP]):
        cms.edit(german_home, "home-de")
    with desk.step("the German page is published with a slug of its own", public, [GONE, UP]):
        cms.edit(german, "delta-auf-deutsch")

    # Wagtail sends no signal of these: a reconcile finds them.
    with desk.missed("restricted to those who are logged in", public, []):
        cms.restrict(beta)
    with desk.missed("QuerySet.update()", public, []):
        cms.manage("shell", "--no-imports", "-c", TAKEN_OFF.format(epsilon))
    with desk.away("sitemapd is down: a new page, a new slug", public, [UP, f"{UP} {GONE}", UP]):
        cms.create(home, "zeta", publish=True)
        cms.edit(alpha, "alpha-three")
    with desk.step("what an import brought is edited", public, [UP]):
        cms.edit(alpha, "alpha-three", title="The same")

    with desk.step("a free slug goes to another page", public, [UP, UP]):
        cms.edit(german, "delta-de")
    with desk.step("deleted with all below", public, [GONE] * 9):
        cms.delete(delta)
    with desk.step("deleted in bulk", public, [GONE] * 5):
        cms.bulk("delete", epsilon, int(cms.one("beta-copy")["id"]))
    desk.done()


def test_a_section_of_more_pages_than_a_delivery_may_hold_moves(
    wagtail: tuple[Desk, Wagtail],
) -> None:
    desk, cms = wagtail
    home = int(cms.one("home")["id"])
    archive = cms.create(home, "archive", publish=True)
    cms.manage("shell", "--no-imports", "-c", FILLED.format(archive, PAGES))
    desk.repair(cms.public())

    some = len(desk.front.notes)
    cms.edit(archive, "attic")
    assert {note.status for note in desk.front.notes[some:]} == {200}
    moved = {event for note in desk.front.notes[some:] for event in note.label.split()}
    assert moved == {UP}
    desk.system.quiet()
    addresses = {page for page in desk.listed() if "/attic/" in page}
    assert len(addresses) == PAGES + 1
    assert addresses <= cms.public()


PAGES = 1_100
FILLED = """
from newsroom.models import Article
archive = Article.objects.get(pk={0})
for n in range({1}):
    archive.add_child(instance=Article(title=str(n), slug=f"page-{{n}}"))
"""
TAKEN_OFF = """
from newsroom.models import Article
Article.objects.filter(slug="beta-copy").update(live=False)
Article.objects.filter(pk={0}).update(live=True)
"""
