"""llms.txt (llmstxt.org): titles, addresses and descriptions of a site's newest pages, by section.

Pure, and Markdown. Whatever a title holds stays text on its line: it opens no list, heading, link,
code or HTML, by CommonMark and for readers that look for brackets alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from shared.sitemap.xml_text import legal

_MARK = "<!-- Written by sitemapd from the events of these pages. -->\n"
_ESCAPES = str.maketrans({
    # Entities where a reader without a parser would take the character for a mark all the same.
    "[": "&#91;", "]": "&#93;", "<": "&lt;", ">": "&gt;", "&": "&amp;",
    **{mark: f"\\{mark}" for mark in "\\`*_#~|!"},
})  # fmt: skip
_AUTOLINKED = re.compile(r"(?<=://)(?=\S)|(?<=\bwww)(?=\.)|(?=@)", re.IGNORECASE)
_BLOCK = re.compile(r"^(?=[-+=])|^(?<=)(\d{1,9})(?=[.)])")
_IN_URL = str.maketrans({"(": "%28", ")": "%29", "<": "%3C", ">": "%3E", "\\": "%5C"})


class TitledPage(NamedTuple):
    """One page of llms.txt."""

    loc: str
    title: str
    description: str = ""


def render(title: str, summary: str, sections: Mapping[str, Sequence[TitledPage]]) -> bytes:
    """Render llms.txt of the site `title`; `summary` may be empty. Sections in the order given."""
    parts = [f"# {_escaped(title)}\n"]
    if summary:
        parts.append(f"\n> {_escaped(summary)}\n")
    for name, pages in sections.items():
        parts.append(f"\n## {_escaped(name)}\n\n")
        parts += [_line(page) for page in pages]
    return "".join((*parts, "\n", _MARK)).encode()


def is_ours(content: bytes) -> bool:
    """True if `content` is an llms.txt that `render` made."""
    return content.endswith(_MARK.encode())


def text(given: str) -> str:
    """`given`, a text of a sender, as text of one line of Markdown."""
    # A zero-width joint breaks what is linked without a mark: addresses, www., mail.
    return _AUTOLINKED.sub("\u2060", _escaped(given))


def _escaped(given: str) -> str:
    line = " ".join(legal(given).split()).translate(_ESCAPES)
    return _BLOCK.sub(lambda found: f"{found[1]}\\" if found[1] else "\\", line)


def _line(page: TitledPage) -> str:
    about = f": {text(page.description)}" if page.description else ""
    return f"- [{text(page.title)}]({page.loc.translate(_IN_URL)}){about}\n"
