"""Guides: instructions for connecting a CMS, with the evidence for each claim in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

RUN = "run: make test-cms"
"""Evidence of a claim that a real sender has shown."""
RUN_ALWAYS = "run: make test"
"""Evidence of a claim that every run of the tests shows."""


def checked(*packages: str) -> str:
    """Return the evidence of a claim checked against the vendor's npm packages, each with its
    version.

    The check is in tests/system/cms.
    """
    return f"checked against npm {', '.join(packages)}: make test-cms"


def documented(*pages: str) -> str:
    """Return the evidence of a claim that rests on pages of the vendor alone."""
    return f"from documentation, not run: {' '.join(pages)}"


class Guide(NamedTuple):
    """Instructions for connecting one CMS.

    `{address}`, its parts `{origin}` and `{site}`, and `{secret}` are filled in. `place` is where
    the sender keeps its secret, in the words of its interface. `config` is added to sitemapd.toml
    besides the secret; `chosen` is True if the administrator chooses the secret, False if the
    vendor issues it. `evidence` maps each claim to RUN, RUN_ALWAYS, `checked` or `documented`.
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
        """The detail of a refused authentication, in the words of the sender's interface."""
        return f"{self.place} is not a secret of this site"


def literal(text: str) -> str:
    """Escape the braces of `text` for the steps of a Guide, which are a format string."""
    return text.replace("{", "{{").replace("}", "}}")
