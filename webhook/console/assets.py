"""Static files of the console: style, script, icon. Names hold a content hash, so files never
change.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files

from flask import Response, abort

_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class Assets:
    """Every file of the folder `static`, read once."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._files: dict[str, tuple[bytes, str]] = {}
        for path in files("webhook.console").joinpath("static").iterdir():
            stem, _, kind = path.name.rpartition(".")
            if kind in _TYPES:
                content = path.read_bytes()
                name = f"{stem}.{hashlib.sha256(content).hexdigest()[:16]}.{kind}"
                self._names[path.name] = name
                self._files[name] = content, _TYPES[kind]

    def name(self, plain: str) -> str:
        """Return the name under which the file `plain` is served."""
        return self._names[plain]

    def serve(self, name: str) -> Response:
        """Return one file; 404 for an unknown name, such as that of another version."""
        if name not in self._files:
            abort(404)
        content, kind = self._files[name]
        answer = Response(content, content_type=kind)
        answer.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return answer
