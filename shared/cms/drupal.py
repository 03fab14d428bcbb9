"""Entities of Drupal, as core's serializer or JSON:API writes them."""

from __future__ import annotations

from shared.cms.fields import Fields, date, mapping, text
from shared.cms.pages import SentPage

PLAIN = {"node": "node", "taxonomy_term": "taxonomy/term"}
"""Path of a page without an alias, by entity type."""


def page(kind: str, bundle: str, number: str, fields: Fields) -> SentPage:
    """Return the page of a published node or term in one language; `fields` are flat."""
    locale = str(fields.get("langcode") or "")
    members = {"lastmod": date(fields, "changed"), "published": date(fields, "created")}
    default = "/{path.alias}" if text(fields, "path.alias") else f"/{PLAIN[kind]}/{{nid}}"
    return SentPage(
        bundle, number, fields, locale, default=default, members=members, owner=(kind, locale)
    )


def flat(entity: Fields) -> Fields:
    """Return the first value of each field: core writes `[{"value": true}]`, JSON:API `true`."""
    found = dict(mapping(entity.get("attributes")) or entity)
    for name, value in found.items():
        row = mapping(value[0]) if isinstance(value, list) and value else None
        if row is not None:
            found[name] = row.get("value", row)
    if isinstance(entity.get("id"), str):
        found.setdefault("uuid", entity["id"])
    found.setdefault("nid", found.get("drupal_internal__nid") or found.get("drupal_internal__tid"))
    return found
