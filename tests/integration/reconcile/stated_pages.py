"""Pages of a source, as its NDJSON states them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ORIGIN = "https://www.example.com"

Members = dict[str, Any]


def page(number: int, **members: Any) -> Members:
    return {
        "loc": f"{ORIGIN}/{number}", "lastmod": f"2026-01-{1 + number % 28:02}",
        "id": f"id-{number}", **members,
    }  # fmt: skip


def ndjson(path: Path, pages: list[Members]) -> str:
    path.write_text("".join(json.dumps(each) + "\n" for each in pages))
    return f"ndjson:{path}"
