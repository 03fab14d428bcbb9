"""Where the corpus of real data is: beside the checkout, or where SITEMAPD_CORPUS says."""

from __future__ import annotations

import os
from pathlib import Path

CORPUS = Path(
    os.environ.get("SITEMAPD_CORPUS")
    or Path(__file__).resolve().parents[1].parent / "shared" / "corpus"
)
