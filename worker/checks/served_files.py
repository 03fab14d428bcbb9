"""Check that the web server serves the published bytes, with the right type.

Crawlers read the served files: a web server with another root, a cache that keeps an old file, a
redirect (RELIABILITY T31) or a wrong type makes correct files on disk useless.
"""

from __future__ import annotations

import gzip
import hashlib
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from shared.config.site import Site
from shared.sitemap import shards
from shared.sitemap.robots import MAX_BYTES
from shared.sitemap.shards import Shard
from shared.store.keys import PublishedFile
from worker.checks.progress import CheckTally, Step
from worker.http.crawler_fetch import FetchedFile, NoAnswerError, fetch
from worker.publishing.ownership import path_of
from worker.publishing.web_root import WebRoot

NEWEST = 20
"""Number of shard files that are fetched, the newest ones."""

TOTAL_S = 60.0
GIVEN_UP = 3
"""Number of files in a row without an answer, after which no more are fetched."""

_TRIES = 3
_XML = frozenset({"application/xml", "text/xml"})
_TYPES = {
    ".xml": _XML,
    ".gz": frozenset({"application/gzip", "application/x-gzip", "application/octet-stream"}),
    ".txt": frozenset({"text/plain"}),
}


class _File(NamedTuple):
    """A file: its listed `name`, and its `path` on disk."""

    name: str
    path: str

    @property
    def packed(self) -> bool:
        """True if it is compressed on disk, and served with a Content-Encoding."""
        return self.name != self.path


class ServedFilesCheck:
    """Check of the served files of one site; the findings go to `tally`."""

    def __init__(self, site: Site, tally: CheckTally, seen: Mapping[str, Sequence[str]]) -> None:
        """Prepare the check; `seen` are the `validators` of the last check: ETag, Last-Modified,
        checksum.
        """
        self._site, self._tally, self._before = site, tally, seen
        self.validators: dict[str, list[str]] = {}

    def look(self, pages: Sequence[int], files: Mapping[Shard, PublishedFile], step: Step) -> None:
        """Fetch the index files `pages`, robots.txt and the newest of `files`.

        Raises PublishError, and CheckError from `step`.
        """
        root, deadline, silent = WebRoot(self._site.web_root), time.monotonic() + TOTAL_S, 0
        try:
            for file in self._wanted(root, pages, files):
                if silent == GIVEN_UP or time.monotonic() > deadline:
                    self._tally.add("served", file.name, "not fetched: earlier files took too long")
                    continue
                answered = self._compare(root, file, step)
                silent = 0 if answered else silent + 1
        finally:
            root.close()

    def robots(self, step: Step) -> bytes | None:
        """Return robots.txt of the host as served; empty if there is none, None if unknown.

        Raises CheckError from `step`.
        """
        try:
            answer = fetch(self._site.base.origin + "/robots.txt", MAX_BYTES, lambda: step(0))
        except NoAnswerError:
            return None
        if answer.status == 200:
            return answer.body
        return b"" if 400 <= answer.status < 500 else None

    def _wanted(
        self, root: WebRoot, pages: Sequence[int], files: Mapping[Shard, PublishedFile]
    ) -> Iterator[_File]:
        for page in pages[:NEWEST]:
            name = shards.index_name(page)
            yield _File(name, name)
        if self._site.base.path == "/" and root.read_own("robots.txt") is not None:
            yield _File("robots.txt", "robots.txt")
        for shard in sorted(files, key=lambda each: -files[each].lastmod)[:NEWEST]:
            name = shards.file_name(shard, self._site.form)
            yield _File(name, path_of(shard, self._site.form))

    def _compare(self, root: WebRoot, file: _File, step: Step) -> bool:
        """Compare a served file with the disk; return True if there was an answer.

        A file published meanwhile is fetched again.
        """
        url, content = self._site.base.url(file.name), _content(root, file)
        for _ in range(_TRIES):
            if content is None:
                return True  # missing on disk: another check reports it
            try:
                answer = fetch(url, len(content), lambda: step(0), gzip=file.packed)
            except NoAnswerError as error:
                self._tally.add("served", url, str(error))
                return False
            after = _content(root, file)
            if answer.body == content or after == content:
                break
            content = after
        if content is not None:
            self._judge(url, file, answer, content)
        return True

    def _judge(self, url: str, file: _File, answer: FetchedFile, content: bytes) -> None:
        status, headers = answer.status, answer.headers
        if 300 <= status < 400:
            where = "".join(c for c in headers.get("location", "") if c.isprintable())[:200]
            self._tally.add("served", url, f"answered {status}, a redirect to {where or 'nowhere'}")
        elif status != 200:
            self._tally.add("served", url, f"answered {status}")
        elif answer.body != content:
            self._tally.add("served", url, "different content than published")
        else:
            self._headers(url, file, answer)

    def _headers(self, url: str, file: _File, answer: FetchedFile) -> None:
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        right = _TYPES["." + file.name.rpartition(".")[2]]
        if kind not in right:
            said = "".join(c for c in kind if c.isprintable())[:80]
            self._tally.add(
                "served-type", url, f"{said or 'no Content-Type'}: must be {min(right)}"
            )
        found = [
            answer.headers.get("etag", ""), answer.headers.get("last-modified", ""),
            hashlib.blake2b(answer.body, digest_size=8).hexdigest(),
        ]  # fmt: skip
        self.validators[file.name] = found
        if not found[0] and not found[1]:
            self._tally.add("served-validators", url, "neither ETag nor Last-Modified")
        elif not _moved(self._before.get(file.name), found):
            self._tally.add(
                "served-validators", url, "the content changed, but ETag and Last-Modified did not"
            )


def _moved(before: Sequence[str] | None, now: Sequence[str]) -> bool:
    """Return True if a crawler that sends the validators of `before` gets the current bytes.

    It sends both, and the ETag takes precedence (RFC 9110, 13.1.3).
    """
    if before is None or before[2] == now[2]:
        return True
    return before[0] != now[0] if before[0] and now[0] else before[1] != now[1]


def _content(root: WebRoot, file: _File) -> bytes | None:
    """Return the content of the file, decoded; None if it does not exist."""
    found = root.read_own(file.path)
    if found is None or not file.packed:
        return found
    try:
        return gzip.decompress(found)
    except (OSError, EOFError, zlib.error):
        return None  # damaged on disk: another check reports it
