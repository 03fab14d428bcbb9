"""Configuration files as text, and what is reported of them."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Callable

import pytest

from shared.config.settings import Settings
from shared.config.standard_secret import PREFIX
from shared.errors import ConfigError

CANARY = "canary-4f1d-tweet-tweet"
SECRET = PREFIX + base64.b64encode(CANARY.encode() * 2).decode()

SITE = f"""
[sites.demo]
base_url = "https://WWW.example.com:443"
web_root = "public"
tokens = ["{CANARY}"]
"""

Load = Callable[[str], Settings]


def faults(load: Load, text: str) -> dict[str, str]:
    """Name and detail of each fault; no report of any may repeat a secret."""
    with pytest.raises(ConfigError) as caught:
        load(text)
    told = f"{caught.value!r} {caught.value.faults} {traceback.format_exception(caught.value)}"
    assert CANARY not in told
    assert SECRET not in told
    return {fault.field: fault.detail for fault in caught.value.faults}


def with_site(lines: str) -> str:
    return f"{SITE}{lines}\n"
