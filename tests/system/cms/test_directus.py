"""A year of an editor's work in a running Directus: the sitemap is what its API shows as published.

Directus has no states of its own: `status` is a field, `published` one of its values.
"""

from __future__ import annotations

import json

import pytest

from tests.system.cms.desk import Desk
from tests.system.cms.directus import ARTICLES, NOTES, PRODUCTS, Directus

pytestmark = [pytest.mark.cms_directus, pytest.mark.timeout(3_600)]

BODY_LIMIT = 1_048_576
"""What sitemapd takes unless it is configured otherwise."""
DRAFT, PUBLISHED, ARCHIVED = "draft", "published", "archived"


def _sends(collection: str, action: str, times: int = 1) -> list[str]:
    return [f"{collection}.items.{action}"] * times


def test_a_year_of_a_directus_editor(directus: tuple[Desk, Directus]) -> None:
    desk, cms = directus
    public = cms.public
    create, update = _sends(ARTICLES, "create"), _sends(ARTICLES, "update")
    delete = _sends(ARTICLES, "delete")

    with desk.step("a draft", public, create):
        (alpha,) = cms.create(ARTICLES, {"slug": "alpha", "status": DRAFT})
    with desk.step("a draft is edited", public, update):
        cms.save(ARTICLES, alpha, body="more")
    with desk.step("published", public, update):
        cms.save(ARTICLES, alpha, status=PUBLISHED)
    with desk.step("edited", public, update):
        cms.save(ARTICLES, alpha, body="more still")
    with desk.step("a new slug", public, update):
        cms.save(ARTICLES, alpha, slug="alpha-two")
    with desk.step("saved without a change", public, update):
        cms.save(ARTICLES, alpha, slug="alpha-two", status=PUBLISHED)
    with desk.step("archived", public, update):
        cms.save(ARTICLES, alpha, status=ARCHIVED)
    with desk.step("edited in the archive", public, update):
        cms.save(ARTICLES, alpha, slug="alpha-three")
    with desk.step("published again", public, update):
        cms.save(ARTICLES, alpha, status=PUBLISHED)
    with desk.step("created and published at once", public, create):
        (beta,) = cms.create(ARTICLES, {"slug": "beta", "status": PUBLISHED})
    with desk.step("the status is the default of its field", public, create):
        cms.create(ARTICLES, {"slug": "by-default"})
    with desk.step("two pages swap their slugs: the first", public, update):
        cms.save(ARTICLES, alpha, slug="alpha-was-here")
    with desk.step("two pages swap their slugs: the second", public, update):
        cms.save(ARTICLES, beta, slug="alpha-three")
    with desk.step("two pages swap their slugs: the first again", public, update):
        cms.save(ARTICLES, alpha, slug="beta")

    with desk.step("several at once", public, create * 3):
        several = cms.create(ARTICLES, *({"slug": f"many-{number}"} for number in range(3)))
    with desk.step("published in bulk", public, update):
        cms.save(ARTICLES, *several, status=PUBLISHED)
    with desk.step("edited in bulk", public, update):
        cms.save(ARTICLES, *several, body="the same for all")
    with desk.step("archived in bulk", public, update):
        cms.save(ARTICLES, *several, status=ARCHIVED)
    with desk.step("deleted in bulk", public, delete):
        cms.delete(ARTICLES, *several)

    long = "A long article. " * 4_000
    with desk.step("sixty long articles", public, create * 60):
        sixty = cms.create(
            ARTICLES, *({"slug": f"long-{number}", "body": long} for number in range(60))
        )
    with desk.step("sixty long articles are published in bulk", public, update):
        cms.save(ARTICLES, *sixty, status=PUBLISHED)
    assert desk.front.notes[-1].size < BODY_LIMIT < 60 * len(long)
    with desk.step("sixty are deleted", public, delete):
        cms.delete(ARTICLES, *sixty)

    with desk.step("a collection without a status", public, _sends(PRODUCTS, "create")):
        (lamp,) = cms.create(PRODUCTS, {"slug": "lamp"})
    assert lamp == alpha, "two collections count alike"
    with desk.step("a product with the key of an article", public, _sends(PRODUCTS, "update")):
        cms.save(PRODUCTS, lamp, slug="desk-lamp")
    with desk.step("that article is edited", public, update):
        cms.save(ARTICLES, alpha, body="no lamp")
    with desk.step("the product is deleted", public, _sends(PRODUCTS, "delete")):
        cms.delete(PRODUCTS, lamp)

    with desk.step("a key that is not called id", public, _sends(NOTES, "create")):
        cms.create(NOTES, {"code": "n-1", "status": PUBLISHED})
    with desk.step("it is edited", public, _sends(NOTES, "update")):
        cms.save(NOTES, "n-1", body="more")
    with desk.step("two are drafts", public, _sends(NOTES, "create", 2)):
        cms.create(NOTES, {"code": "n-2"}, {"code": "n-3"})
    with desk.step("both are published in bulk", public, _sends(NOTES, "update")):
        cms.save(NOTES, "n-2", "n-3", status=PUBLISHED)
    with desk.step("one is withdrawn", public, _sends(NOTES, "update")):
        cms.save(NOTES, "n-1", status=DRAFT)
    with desk.step("all are deleted", public, _sends(NOTES, "delete")):
        cms.delete(NOTES, "n-1", "n-2", "n-3")

    # A flow sends once, whatever it is told: what was missed is found by a reconcile.
    with desk.away("sitemapd is down", public, [*create, *update, *update]):
        (gamma,) = cms.create(ARTICLES, {"slug": "gamma", "status": PUBLISHED})
        cms.save(ARTICLES, alpha, slug="alpha-moved")
        cms.save(ARTICLES, beta, status=ARCHIVED)
    with desk.step("what was repaired is edited", public, update):
        cms.save(ARTICLES, gamma, body="more")
    with desk.step("then it moves", public, update):
        cms.save(ARTICLES, gamma, slug="gamma-two")
    # Directus does not say where it was: a reconcile with its own interface knew the id.
    with desk.step("what was repaired is deleted at once", public, delete):
        cms.delete(ARTICLES, alpha)
    with desk.step("deleted, one by one", public, delete * 2):
        for key in (beta, gamma):
            cms.delete(ARTICLES, key)
    desk.done()


def test_a_step_read_data_that_is_refused_is_named(directus: tuple[Desk, Directus]) -> None:
    """By a field that the collection lacks: nothing is listed by half, and the answer says why."""
    desk, cms = directus
    with desk.step("published", cms.public, _sends(ARTICLES, "create")):
        (page,) = cms.create(ARTICLES, {"slug": "alpha", "status": PUBLISHED})
    for operation in cms.ask("GET", "/operations?limit=-1"):
        if operation["type"] == "item-read":
            query = {**operation["options"]["query"], "fields": ["id", "no_such_field"]}
            options = {**operation["options"], "query": query}
            cms.ask("PATCH", f"/operations/{operation['id']}", {"options": options})
    with desk.sending("edited", _sends(ARTICLES, "update")):
        cms.save(ARTICLES, page, slug="alpha-two")
    said = json.loads(desk.front.notes[-1].answer)
    assert "the step Read Data was refused, FORBIDDEN" in str(said["ignored"])
    assert desk.listed() == {f"{cms.url}/blog/alpha"}
