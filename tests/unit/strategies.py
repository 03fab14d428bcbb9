"""Valid values to draw from, made the way the product makes them: from any text a sender gives."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from shared.errors import UrlError
from shared.sitemap import urls, w3c_dates
from shared.sitemap.entry import CHANGEFREQS, Entry, priority_text
from shared.sitemap.extensions import alternates
from shared.sitemap.extensions.languages import hreflang
from shared.sitemap.urls import Base

ROOT = Base.parse("https://www.example.com/")
MARKED = ["&", "'", '"', "<", ">", "&amp;", "&lt;", "</url>\n", "<url><loc>", "</loc>", "%0A", ";"]


def _canonical(rest: str) -> str | None:
    try:
        return urls.canonical(ROOT.prefix + rest, ROOT)
    except UrlError:
        return None


rests = st.text(max_size=30) | st.lists(st.sampled_from([*MARKED, "a", "/", "?"])).map("".join)
locs = rests.map(_canonical).filter(lambda loc: loc is not None)
moments = st.integers(0, 253_402_300_799).map(w3c_dates.from_epoch_s)
lastmods = moments | st.dates().map(str)
priorities = st.floats(0, 1).map(priority_text)
entries = st.builds(
    Entry,
    locs,
    st.none() | lastmods,
    st.none() | st.sampled_from(sorted(CHANGEFREQS)),
    st.none() | priorities,
)

CODES = ["en", "de", "zh-Hant", "zh-hans-cn", "pt-BR", "en-gb", "sr-Latn-RS", "X-Default"]
codes = st.sampled_from(CODES).map(hreflang)
alternate_sets = st.dictionaries(codes, locs, max_size=6).map(
    lambda d: alternates.ordered(d.items())
)
extended_entries = st.builds(replace, entries, alternates=alternate_sets)
