"""Whether the web server hands out what was published: the same bytes, and as what they are.

Crawlers read what is served: a web server with another root, a cache that holds on to an old file,
a redirect (RELIABILITY T31) or a wrong type undo what is right on the disk.
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
"""Shard files that are fetched, those written last."""

TOTAL_S = 60.0
GIVEN_UP = 3
"""Files in a row without an answer, after which no more are asked for."""

_TRIES = 3
_XML = frozenset({"application/xml", "text/xml"})
_TYPES = {
    ".xml": _XML,
    ".gz": frozenset({"application/gzip", "application/x-gzip", "application/octet-stream"}),
    ".txt": frozenset({"text/plain"}),
}


class _File(NamedTuple):
    """A file as it is listed under `name`, and where it lies."""

    name: str
    path: str

    @property
    def packed(self) -> bool:
        """Whether it lies there compressed, and is served with a Content-Encoding."""
        return self.name != self.path


class ServedFilesCheck:
    """Fetches the files of one site; what is wrong goes to `tally`."""

    def __init__(self, site: Site, tally: CheckTally, seen: Mapping[str, Sequence[str]]) -> None:
        """`seen` are the validators and checksums of the last time, as `validators` gave them."""
        self._site, self._tally, self._before = site, tally, seen
        self.validators: dict[str, list[str]] = {}

    def look(self, pages: Sequence[int], files: Mapping[Shard, PublishedFile], step: Step) -> None:
        """Fetch the index files `pages`, robots.txt and the newest of `files`.

        Raises CheckError from `step`.
        """
        root, deadline, silent = WebRoot(self._site.web_root), time.monotonic() + TOTAL_S, 0
        try:
            for file in self._wanted(root, pages, files):
                if silent == GIVEN_UP or time.monotonic() > deadline:
                    self._tally.add("served", file.name, "not asked for: the ones before took long")
                    continue
                answered = self._compare(root, file, step)
                silent = 0 if answered else silent + 1
        finally:
            root.close()

    def robots(self, step: Step) -> bytes | None:
        """robots.txt as crawlers get it: that of the host. Empty if there is none; None if nobody
        knows.
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
        """Hold what is served against the disk; whether there was an answer.

        What is published meanwhile is fetched again.
        """
        url, content = self._site.base.url(file.name), _content(root, file)
        for _ in range(_TRIES):
            if content is None:
                return True  # missing on the disk: that is another check's
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
            self._tally.add("served", url, "other bytes than were published")
        else:
            self._headers(url, file, answer)

    def _headers(self, url: str, file: _File, answer: FetchedFile) -> None:
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        right = _TYPES["." + file.name.rpartition(".")[2]]
        if kind not in right:
            said = "".join(c for c in kind if c.isprintable())[:80]
            self._tally.add(
                "served-type", url, f"{said or 'no Content-Type'}: {min(right)} is right"
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
                "served-validators", url, "the bytes are others, ETag and Last-Modified the same"
            )


def _moved(before: Sequence[str] | None, now: Sequence[str]) -> bool:
    """Whether a crawler that asks with the validators of `before` gets what is served now.

    It sends both, and the ETag is the one that counts (RFC 9110, 13.1.3).
    """
    if before is None or before[2] == now[2]:
        return True
    return before[0] != now[0] if before[0] and now[0] else before[1] != now[1]


def _content(root: WebRoot, file: _File) -> bytes | None:
    """What the file holds, decoded; None if it is not there."""
    found = root.read_own(file.path)
    if found is None or not file.packed:
        return found
    try:
        return gzip.decompress(found)
    except (OSError, EOFError, zlib.error):
        return None  # damaged on the disk: that is another check's
