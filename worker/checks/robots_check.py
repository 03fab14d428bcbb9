"""Check of pages and files against the Disallow rules of a robots.txt for AGENTS (PROTOCOL R10).

Protego decides. A regular expression built from the Disallow rules selects the pages to ask Protego
about: on a site whose robots.txt disallows none of its pages there are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from protego import Protego

from shared.sitemap.robots import MAX_BYTES

AGENTS = ("Googlebot", "Bingbot", "*")

_NAMES = tuple(agent.lower() for agent in AGENTS)
_AGENT = re.compile(r"user[- ]?agent\s*:?\s*(.*)", re.IGNORECASE)
_RULE = re.compile(r"(?:allow|d[a-z]*)\s*:", re.IGNORECASE)
# Every spelling of Disallow that protego reads begins so, and nothing else that it reads.
_FORBIDS = re.compile(r"d[a-z]*\s*:?\s*(.*)", re.IGNORECASE)
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class RobotsCheck:
    """One robots.txt, as crawlers read it; `source` describes its origin, `sitemaps` are the
    addresses that it names.
    """

    def __init__(self, content: bytes, source: str) -> None:
        text = content[:MAX_BYTES].decode("utf-8-sig", errors="replace")
        self.source = source
        self._robots = Protego.parse(text)
        self.sitemaps = frozenset(self._robots.sitemaps)
        patterns = [_pattern(rule) for rule in _forbidding(text)]
        self._suspect = re.compile("|".join(patterns), re.DOTALL) if patterns else None

    @property
    def forbids_nothing(self) -> bool:
        """True if no rule can disallow a page to any of AGENTS."""
        return self._suspect is None

    def suspects(self, locs: Iterable[str], start: int) -> list[str]:
        """Return those of `locs` that may be disallowed; the path of each begins at `start`."""
        if self._suspect is None:
            return []
        match = self._suspect.match
        return [loc for loc in locs if match(loc if "%" not in loc else unquote(loc), start)]

    def barred(self, loc: str) -> tuple[str, ...]:
        """Return those of AGENTS that may not fetch the page `loc`."""
        return tuple(agent for agent in AGENTS if not self._robots.can_fetch(loc, agent))


def _forbidding(text: str) -> Iterator[str]:
    """Yield the values of all Disallow rules in groups that may apply to one of AGENTS.

    A line that parsers may assign to different groups is taken to apply.
    """
    meant = after_rule = False
    for raw in text.splitlines():
        line = raw.partition("#")[0].strip()
        if agent := _AGENT.match(line):
            meant = _may_be_meant(agent[1]) or (meant and not after_rule)
            after_rule = False
            continue
        after_rule = after_rule or _RULE.match(line) is not None
        rule = _FORBIDS.match(line)
        if meant and rule and rule[1]:
            yield rule[1]


def _may_be_meant(agent: str) -> bool:
    return "*" in agent or any(agent.lower() in name for name in _NAMES)


def _pattern(rule: str) -> str:
    """Return a regular expression that matches every path the rule does, and few others.

    All escapes are decoded on both sides: crawlers compare after decoding some. The text after a
    `*` is matched at its first occurrence only, so the time grows linearly with the URL.
    """
    if rule.startswith(("http://", "https://")):
        rule = f"/{rule}"  # as protego reads it
    broken = _BROKEN_ESCAPE.search(rule)
    rule = rule[: broken.start()] if broken else rule.removesuffix("$")
    first, *others = (re.escape(unquote(piece)) for piece in rule.split("*"))
    return first + "".join(f"(?>.*?{piece})" for piece in others)
