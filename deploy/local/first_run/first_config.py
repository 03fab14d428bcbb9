"""The configuration of a first start."""

from __future__ import annotations

import secrets
from pathlib import Path
from string import Template

from deploy.local.processes import replace
from shared.config.settings import FILE
from shared.config.standard_secret import new_secret

SITE = "demo"
TEMPLATE = Path(__file__).with_name("first_config.template")
"""The configuration, with every field: a string.Template."""


def write(home: Path, address: str) -> Path:
    """Return the configuration file in `home`; write one for a demo site at `address` if there is
    none.

    Never overwrites a file. Mode 0600, since it holds secrets.
    """
    path = home / FILE
    text = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        address=address,
        site=SITE,
        secret=new_secret(),
        token=secrets.token_urlsafe(32),
        console=secrets.token_urlsafe(32),
    )
    if not path.exists():
        (home / "public").mkdir(mode=0o755, exist_ok=True)
        replace(path, text)
    return path
