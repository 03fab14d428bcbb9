"""Access logs of any bytes: nothing is raised but for a broken gzip, and no line goes uncounted."""

from __future__ import annotations

import gzip
from io import BufferedReader, BytesIO

from shared.crawls.crawlers import engine_of
from shared.crawls.delays import CrawlDelays
from shared.crawls.log_files import AccessLog
from shared.crawls.log_lines import parse
from tests.unit.shared.crawls.crawling import Facts, caddy, combined, nginx_json

_AT_MS = 1_795_284_000_000
_URL = "https://www.example.com/posts-1.xml"
_LINES = (
    combined(_AT_MS, "/posts-1.xml", before="example.com:80 ", zone_min=-150),
    nginx_json(_AT_MS, "/posts-1.xml", time_iso8601="2026-11-21T18:00:00+00:00"),
    caddy(_AT_MS, "/posts-1.xml"),
)
SEEDS = (*_LINES, b"".join(_LINES), gzip.compress(_LINES[0]))


def access_log(data: bytes) -> None:
    """What a plain reading of every line finds is found, and can be counted."""
    log, crawls = (
        AccessLog(),
        CrawlDelays("https://www.example.com/", Facts([(_URL, 1)], [(_URL, 1)])),
    )
    found = []
    try:
        for engine, request in log.read(BufferedReader(BytesIO(data))):  # type: ignore[type-var]
            found.append(request)
            if crawls.fetched(engine.name, request):
                crawls.take(engine.name, request)
    except gzip.BadGzipFile:
        assert data.startswith(b"\x1f\x8b")
        return
    if not data.startswith(b"\x1f\x8b"):
        requests = [parse(line) for line in data.split(b"\n")]
        assert found == [each for each in requests if each and engine_of(each.agent)]
        assert log.lines == data.count(b"\n") + (data[-1:] not in {b"", b"\n"})
    assert log.engines == len(found) <= log.lines
