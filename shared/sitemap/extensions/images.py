"""Images of a page (PROTOCOL I1 to I3): `[{"loc": URL}, ...]`.

Deprecated beside `loc`: `caption`, `geo_location`, `title`, `license` (a URL).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.sitemap.extensions import elements
from shared.sitemap.extensions.elements import Element
from shared.sitemap.extensions.report import ValueReport
from shared.sitemap.extensions.value_types import Text, Url

PREFIX = "image"
NAMESPACE = "http://www.google.com/schemas/sitemap-image/1.1"
MAX = 1_000
_MAX_TEXT = 2_048  # ours: the schema has no limit

Image = Mapping[str, Any]


def _old(tag: str, kind: Text | Url) -> Element:
    return Element(tag=tag, kind=kind, rule="PROTOCOL I2", deprecated=True)


IMAGE = Element(
    tag="image", name="images", rule="PROTOCOL I1", most=MAX,
    children=(
        Element(tag="loc", kind=Url(), rule="PROTOCOL I1", required=True),
        _old("caption", Text(_MAX_TEXT)),
        _old("geo_location", Text(_MAX_TEXT)),
        _old("title", Text(_MAX_TEXT)),
        _old("license", Url()),
    ),
)  # fmt: skip


def take(value: object, report: ValueReport, *, deprecated: bool) -> tuple[Image, ...]:
    """The images of a JSON value; faults go to `report`."""
    if value is None:
        return ()
    return tuple(elements.take(IMAGE, value, report, IMAGE.name, deprecated=deprecated) or ())


def render(images: tuple[Image, ...]) -> str:
    """The `<image:image>` elements of canonical images."""
    return elements.render(PREFIX, IMAGE, images)


def read(xml: str) -> tuple[Image, ...]:
    """The images in a fragment, as `render` wrote them."""
    return tuple(elements.read(PREFIX, IMAGE, xml))
