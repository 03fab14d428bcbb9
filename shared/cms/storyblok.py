"""Stories of Storyblok, by their full slugs."""

from __future__ import annotations

from shared.cms.pages import SentPage

STORY = "story"


def page(number: str | int, full_slug: str) -> SentPage:
    """Return the page of a published story.

    A story has one slug; its first folder is a language where folders are languages.
    """
    slug = full_slug.strip("/")
    fields = {"full_slug": slug, "slug": slug.rpartition("/")[2]}
    return SentPage(STORY, number, fields, slug, default="/{full_slug}", owner=(STORY, ""))
