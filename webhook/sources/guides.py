"""Guides: how an administrator connects a CMS, and how each claim of that is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

RUN = "run: make test-cms"
"""How a claim is known that a real sender has shown."""
RUN_ALWAYS = "run: make test"
"""The same, with every run of the tests."""


def checked(*packages: str) -> str:
    """Return how a claim is known that packages of the vendor on npm hold, each with its version.

    tests/system/cms has the check.
    """
    return f"checked against npm {', '.join(packages)}: make test-cms"


def documented(*pages: str) -> str:
    """Return how a claim is known that nobody here has seen: by pages of the vendor."""
    return f"from documentation, not run: {' '.join(pages)}"


class Guide(NamedTuple):
    """How an administrator connects this CMS.

    `{address}`, the `{origin}` and `{site}` that are parts of it, and `{secret}` are filled in.
    `place` is where the sender has its secret, in the words of its interface. `config` is what goes
    into sitemapd.toml besides the secret, which the administrator has `chosen`, or gets from the
    vendor. `evidence` tells of each claim how it is known: RUN, `checked` or `documented`.
    """

    title: str
    credential: str
    place: str
    steps: str
    sends: str
    caveats: str
    evidence: Mapping[str, str]
    config: str = ""
    chosen: bool = False

    @property
    def unproven(self) -> str:
        """What is wrong where a delivery is not let in, in the words of the sender."""
        return f"{self.place} is not a secret of this site"


def literal(text: str) -> str:
    """`text` as it is to stand in the steps of a Guide, whose braces are filled in."""
    return text.replace("{", "{{").replace("}", "}}")
