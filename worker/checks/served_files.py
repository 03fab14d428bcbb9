"""Check that the web server serves the published bytes, with the right type.

Crawlers read the served files: a web server with another root, a cache that keeps an old file, a
redirect (RELIABILITY T31) or a wrong type makes correct files on disk useless.
"""

from __future__ import annotations

import gzip
import hashlib
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from shared.config.filenames import index_name
from shared.config.sites.site import Site
from shared.errors import OutboundError
from shared.sitemap import shards
from shared.sitemap.robots import MAX_BYTES
from shared.sitemap.shards import Shard
from shared.store.publishing.publish_batch import PublishedFile
from worker.checks.progress import CheckTally, Step
from worker.http.client import HttpClient
from worker.http.exchange import SERVED, OutboundAnswer, OutboundRequest, configured
from worker.publishing.shard_file import path_of
from worker.publishing.targets.registry import open_own
from worker.publishing.targets.target import Target

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
    ".html": frozenset({"text/html"}),
}


class FileName(NamedTuple):
    """A file: its listed `name`, and its `path` on disk."""

    name: str
    path: str

    @property
    def packed(self) -> bool:
        """True if it is compressed on disk, and served with a Content-Encoding."""
        return self.name != self.path


class ServedFile(NamedTuple):
    """A file as it is on disk, decoded, and as the web server answers for it."""

    file: FileName
    content: bytes
    answer: OutboundAnswer

    @property
    def fault(self) -> str:
        """The fault in what is served, empty if it is the file."""
        status, headers = self.answer.status, self.answer.headers
        if 300 <= status < 400:
            where = "".join(c for c in headers.get("location", "") if c.isprintable())[:200]
            return f"answered {status}, a redirect to {where or 'nowhere'}"
        if status != 200:
            return f"answered {status}"
        return "" if self.answer.body == self.content else "different content than published"

    @property
    def type_fault(self) -> str:
        """The fault in its type, empty if it is right."""
        stated = self.answer.headers.get("content-type", "")
        kind = stated.partition(";")[0].strip().lower()
        right = _TYPES["." + self.file.name.rpartition(".")[2]]
        if kind in right:
            return ""
        said = "".join(c for c in kind if c.isprintable())[:80]
        return f"{said or 'no Content-Type'}: must be {min(right)}"


def fetch(
    url: str, most: int, go_on: Callable[[], None] = lambda: None, *, gzip: bool = False
) -> OutboundAnswer:
    """Return the answer at `url`, as a crawler gets it, with at most `most` + 1 bytes of body.

    `go_on` is called repeatedly, and aborts the request by raising. With `gzip` that is accepted.
    Raises OutboundError.
    """
    request = OutboundRequest("GET", url, url, {"Accept-Encoding": "gzip"} if gzip else {})
    client = HttpClient(configured(url), SERVED, "sitemapd-check", go_on=go_on)
    with client, client.open(request) as answer:
        return OutboundAnswer(answer.status, answer.headers, answer.body(most, cut=True))


def served(
    site: Site, root: Target, file: FileName, go_on: Callable[[], None] = lambda: None
) -> ServedFile | None:
    """Return how `file` is served; None if it is not on disk, or damaged there.

    A file published meanwhile is fetched again. Raises OutboundError, PublishError.
    """
    content, found = _content(root, file), None
    for _ in range(_TRIES):
        if content is None:
            return None
        answer = fetch(site.base.url(file.name), len(content), go_on, gzip=file.packed)
        found = ServedFile(file, content, answer)
        after = _content(root, file)
        if answer.body == content or after == content:
            break
        content = after
    return found


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
        root, deadline, silent = open_own(self._site), time.monotonic() + TOTAL_S, 0
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
        except OutboundError:
            return None
        if answer.status == 200:
            return answer.body
        return b"" if 400 <= answer.status < 500 else None

    def _wanted(
        self, root: Target, pages: Sequence[int], files: Mapping[Shard, PublishedFile]
    ) -> Iterator[FileName]:
        for page in pages[:NEWEST]:
            name = index_name(self._site, page)
            yield FileName(name, name)
        if self._site.base.path == "/" and root.read_own("robots.txt") is not None:
            yield FileName("robots.txt", "robots.txt")
        outputs = self._site.outputs
        further = {
            shards.CHANGE_LIST_FILES[0]: outputs.change_list,
            shards.LLMS: outputs.llms,
            shards.HOSTS: bool(outputs.hosts),
            shards.CONTENTS: outputs.html,
        }
        for name, on in further.items():
            if on and root.look(name) is not None:
                yield FileName(name, name)
        for shard in sorted(files, key=lambda each: -files[each].lastmod)[:NEWEST]:
            name = shards.file_name(shard, self._site.form)
            yield FileName(name, path_of(shard, self._site.form))

    def _compare(self, root: Target, file: FileName, step: Step) -> bool:
        """Compare a served file with the disk; return True if there was an answer.

        One that is missing on disk counts as answered: another check reports it.
        """
        url = self._site.base.url(file.name)
        try:
            found = served(self._site, root, file, lambda: step(0))
        except OutboundError as error:
            self._tally.add("served", url, str(error))
            return False
        if found is not None and found.fault:
            self._tally.add("served", url, found.fault)
        elif found is not None:
            if found.type_fault:
                self._tally.add("served-type", url, found.type_fault)
            self._validators(url, found)
        return True

    def _validators(self, url: str, file: ServedFile) -> None:
        headers = file.answer.headers
        found = [
            headers.get("etag", ""), headers.get("last-modified", ""),
            hashlib.blake2b(file.content, digest_size=8).hexdigest(),
        ]  # fmt: skip
        self.validators[file.file.name] = found
        if not found[0] and not found[1]:
            self._tally.add("served-validators", url, "neither ETag nor Last-Modified")
        elif not _moved(self._before.get(file.file.name), found):
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


def _content(root: Target, file: FileName) -> bytes | None:
    """Return the content of the file, decoded; None if it does not exist."""
    found = root.read_own(file.path)
    if found is None or not file.packed:
        return found
    try:
        return gzip.decompress(found)
    except (OSError, EOFError, zlib.error):
        return None  # damaged on disk: another check reports it
