"""An editor's desk: each step is taken in the CMS, then the sitemap must be what the CMS shows."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import httpx

from tests.system.cms.front import Front, Note
from tests.system.driver import NAMESPACE, System, wait_until

TOKEN = "only-for-these-tests-only-for-these-tests"
CONFIG = """\
body_limit = 10485760

[sites.demo]
base_url = "{url}"
web_root = "public"
secrets = ["whsec_b25seS1mb3ItdGhlc2UtdGVzdHMtb25seQ=="]
tokens = ["{token}"]
shrink_share = 1  # a handful of pages: an editor may take all of them out

[sites.demo.sections.posts]

"""


class Cms(Protocol):
    """What the editor works with: reached at `address`, HOST:PORT."""

    address: str

    def close(self) -> None:
        """End it."""


class Desk:
    """One CMS, one sitemapd and the front before both, over a history of steps."""

    def __init__(self, home: Path, front: Front, source: str) -> None:
        """`source` is the configuration of the connection."""
        self.front = front
        self.sent: Counter[str] = Counter()
        self.source: tuple[str, ...] = ()
        self.system = System(home)
        self.system.configure(CONFIG.format(url=front.url, token=TOKEN) + source)
        self.begin()

    def begin(self) -> None:
        """Start sitemapd (again)."""
        self.system.start()
        self.front.service = urlsplit(self.system.address).netloc

    @contextmanager
    def using(self, cms: Cms) -> Iterator[None]:
        """The front passes on to `cms`, which is closed at the end."""
        self.front.cms = cms.address
        with closing(cms):
            yield

    def close(self) -> None:
        """Stop sitemapd."""
        self.system.end()

    def done(self) -> None:
        """No delivery came that no step expects: one that was late may look like the next one's."""
        assert Counter(note.label for note in self.front.notes) == self.sent

    @contextmanager
    def step(self, what: str, public: Callable[[], set[str]], sends: list[str]) -> Iterator[None]:
        """After what is done within, the deliveries are `sends` and the sitemap is `public`."""
        with self.sending(what, sends):
            yield
        shown, listed = public(), self.listed()
        assert listed == shown, self.report(what, listed, shown)
        self.agrees(what)

    def reads(self, source: str, key: str = "") -> None:
        """From now on hold every step against the CMS's own interface, and repair from it."""
        self.source = ("--against", source, *(("--key", key) if key else ()))

    def agrees(self, what: str) -> None:
        """What the events listed is what a reconcile would list, to the last date."""
        if self.source:
            done = self.system.run("verify", *self.source, "--json")
            assert done.returncode == 0, f"{what}: {done.stdout}{done.stderr}"

    @contextmanager
    def missed(self, what: str, public: Callable[[], set[str]], sends: list[str]) -> Iterator[None]:
        """A step that the deliveries do not tell: the sitemap is wrong after it, until repaired.

        Fails once the CMS tells more, so that nobody repairs what needs no repair.
        """
        with self.sending(what, sends):
            yield
        shown = public()
        assert self.listed() != shown, f"{what}: needs no repair any more"
        self.repair(shown)

    @contextmanager
    def sending(self, what: str, sends: list[str]) -> Iterator[None]:
        """The deliveries of what is done within are `sends`, in any order; all are taken in."""
        before = len(self.front.notes)
        self.sent.update(sends)
        yield
        wanted = Counter(sends)

        def arrived() -> bool:
            return len(self.front.notes) - before >= len(sends)

        def found() -> Counter[str]:
            return Counter(note.label for note in self.front.notes[before:])

        wait_until(arrived, f"{what}: {sends}")
        assert found() == wanted, f"{what}: {self.front.notes[before:]}"
        for note in self.front.notes[before:]:
            assert note.status == 200, f"{what}: {note}"
        self.system.quiet()

    @contextmanager
    def away(self, what: str, public: Callable[[], set[str]], sends: list[str]) -> Iterator[None]:
        """sitemapd is down during what is done within; nobody sends it again; it is repaired."""
        before = len(self.front.notes)
        self.sent.update(sends)
        assert self.system.stop() == 0
        yield

        def failed() -> list[Note]:
            return self.front.notes[before:]

        wait_until(lambda: len(failed()) >= len(sends), f"{what}: {sends}")
        self.begin()
        assert Counter(note.label for note in failed()) == Counter(sends), f"{what}: {failed()}"
        assert {note.status for note in failed()} <= {502}, failed()
        self.system.quiet()
        shown = public()
        assert self.listed() != shown, f"{what}: nothing was missed"
        self.repair(shown)

    def listed(self) -> set[str]:
        """Every page of the published sitemap, as a crawler reads it: over HTTP, by the index."""
        found: set[str] = set()
        for part in self._locs("/sitemap.xml"):
            pages = self._locs(urlsplit(part).path)
            assert pages.isdisjoint(found), f"listed twice: {pages & found}"
            found |= pages
        return found

    def _locs(self, path: str) -> set[str]:
        reply = httpx.get(self.front.url + path, timeout=30)
        if reply.status_code == 404 and path == "/sitemap.xml":
            return set()
        assert reply.status_code == 200, (path, reply.status_code)
        locs = [loc.text or "" for loc in ET.fromstring(reply.content).iter(f"{NAMESPACE}loc")]
        assert len(locs) == len(set(locs)), f"{path} lists a page twice"
        return set(locs)

    def repair(self, shown: set[str]) -> None:
        """What an administrator does: have what is listed compared with what is public."""
        listing = self.system.home / "shown.txt"
        listing.write_text("".join(f"{loc}\n" for loc in sorted(shown)))
        by = self.source or ("--against", f"sitemap:{listing}", "--into", "posts")
        done = self.system.run("reconcile", *by, "--yes")
        assert done.returncode in (0, 1), done.stderr + done.stdout
        self.system.quiet()
        assert self.listed() == shown
        self.agrees("repaired")

    def report(self, what: str, listed: set[str], shown: set[str]) -> str:
        """What differs, and what was last sent."""
        told = [(note.label, json.loads(note.answer or b"null")) for note in self.front.notes[-6:]]
        return (
            f"{what}: listed but not public: {sorted(listed - shown)};"
            f" public but not listed: {sorted(shown - listed)}; last deliveries: {told}"
        )
