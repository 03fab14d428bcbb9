"""The quick look at a robots.txt leaves out no page that protego says is forbidden."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from protego import Protego

from shared.errors import UrlError
from shared.sitemap.urls import Base, canonical
from worker.checks.robots_check import AGENTS, RobotsCheck

ORIGIN = "https://www.example.com"
BASE = Base.parse(ORIGIN)

_piece = st.sampled_from(
    ["/", "a", "b", "*", "$", "?", "=", "%", "%2", "%2F", "%25", "%61", "%D0%B0", "%D0", "%FF", "ü",
     "(", "&", "//", "%2A", "%24", ".", "-", "index.html", "http://"]
)  # fmt: skip
_path = st.lists(_piece, max_size=5).map("".join)
_field = st.sampled_from(
    ["User-agent:", "user-agent", "USERAGENT:", "user agent:", "Disallow:", "disallow", "Dissalow:",
     "Allow:", "Sitemap:", "Crawl-delay:", "Noindex:", "Host:", "dance", "# ", ""]
)  # fmt: skip
_agent = st.sampled_from(["*", "Googlebot", "Bingbot", "google*", "BadBot", "bot", "", "x # y"])
_rule = st.tuples(_field, st.one_of(_agent, _path.map("/".__add__), _path)).map(" ".join)
_robots = st.lists(_rule, max_size=12).map("\n".join)
_simple = st.lists(
    st.tuples(st.sampled_from(["User-agent:", "Disallow:", "Allow:"]), st.one_of(_agent, _path)),
    max_size=8,
).map(lambda lines: "\n".join(f"{field} {value}" for field, value in lines))


@given(st.one_of(_robots, _simple), st.lists(_path.map(f"{ORIGIN}/".__add__), min_size=1))
@example("User-agent: *\nDisallow: /%61/*b$", [f"{ORIGIN}/a/x/b"])
@example("User-agent: *\nDisallow: /ab", [f"{ORIGIN}/%61b"])
@example("User-agent: *\nDisallow: /%", [f"{ORIGIN}/%25"])
@example("User-agent: BadBot\nSitemap: x\nUser-agent: *\nDisallow: /a", [f"{ORIGIN}/ab"])
@example("User-agent: *\ndance\nUser-agent: BadBot\nDisallow: /a", [f"{ORIGIN}/a"])
@example("User-agent: BadBot\nDisallow:\nUser-agent: *\nDisallow: /a", [f"{ORIGIN}/a"])
def test_what_protego_forbids_is_suspected(robots: str, texts: list[str]) -> None:
    """Whatever its lines are, and however its paths and the URLs are escaped."""
    locs = []
    for text in texts:
        try:
            locs.append(canonical(text, BASE))
        except UrlError:
            continue
    protego = Protego.parse(robots)
    forbidden = {loc for loc in locs if not all(protego.can_fetch(loc, a) for a in AGENTS)}
    barrier = RobotsCheck(robots.encode(), "robots.txt")

    suspects = barrier.suspects(locs, len(ORIGIN))

    assert forbidden <= set(suspects)
    assert {loc for loc in suspects if barrier.barred(loc)} == forbidden


def test_only_rules_that_are_meant_for_these_crawlers_cost_anything() -> None:
    """A robots.txt that shuts others out, as most do, leaves every page unsuspected."""
    text = b"User-agent: AhrefsBot\nUser-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nDisallow: /x/"
    barrier = RobotsCheck(text, "robots.txt")

    assert barrier.suspects([f"{ORIGIN}/a", f"{ORIGIN}/x/a"], len(ORIGIN)) == [f"{ORIGIN}/x/a"]
    assert RobotsCheck(text[:50], "robots.txt").forbids_nothing


@pytest.mark.parametrize("stars", [5, 50])
def test_no_rule_takes_long_to_look_for(stars: int) -> None:
    """By processor time, which a busy machine does not lengthen: backtracking would take years."""
    barrier = RobotsCheck(b"User-agent: *\nDisallow: /" + b"*a" * stars + b"*!", "robots.txt")
    began = time.process_time()

    assert barrier.suspects([f"{ORIGIN}/" + "a" * 2_000] * 100, len(ORIGIN)) == []
    assert time.process_time() - began < 10
