"""Published pages that are followed until the engines know them: at most so many of a site.

Under the prefix `readback:`, all without a TTL: `pages` zset: loc -> its publish (ms); `published`
hash: loc -> PublishedPage; of each engine `<engine>` hash: loc -> EngineAnswer, and the zsets
`<engine>:new`: loc that it was never asked about -> its publish (ms), `<engine>:due`: loc that it
did not know -> when it is asked again (ms), `<engine>:unknown`: the same -> its publish (ms).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import redis
from redis.client import Pipeline

from shared.batches import batches
from shared.domain.index_status import (
    EngineAnswer,
    IndexState,
    IndexStatus,
    PublishedPage,
    knows,
    next_ask_ms,
)
from shared.store.client import answering
from shared.store.keys import keys_of

CHUNK = 500


class PageChain(NamedTuple):
    """A page that is followed, and the last answer of each engine that gave one."""

    loc: str
    page: PublishedPage
    answers: Mapping[str, EngineAnswer]


class PageCounts(NamedTuple):
    """Numbers of pages of one engine: of those `followed`, it was never asked about `unasked`, and
    `unknown` were unknown when it was asked last, `late` of them published long ago.
    """

    followed: int
    unasked: int
    unknown: int
    late: int

    @property
    def known(self) -> int:
        """The number of pages that the engine knows."""
        return max(0, self.followed - self.unasked - self.unknown)


class PageChains:
    """Followed pages of one site, at most `most`."""

    def __init__(self, client: redis.Redis, site: str, most: int = 10_000) -> None:
        self._client, self._most, key = client, most, keys_of(site).followed
        self._key, self._pages, self._published = key, key("pages"), key("published")

    def follow(self, pages: Mapping[str, PublishedPage], engines: Iterable[str]) -> None:
        """Follow `pages` from now on; a page that was published again is unknown again."""
        engines = [*engines]
        for locs in batches(pages, CHUNK):
            scores = {loc: pages[loc].published_ms for loc in locs}
            with answering():
                pipe = self._client.pipeline()
                pipe.zadd(self._pages, scores)
                stored = {loc: json.dumps(pages[loc], separators=(",", ":")) for loc in locs}
                pipe.hset(self._published, mapping=stored)  # type: ignore[arg-type]
                for engine in engines:
                    pipe.zadd(self._key(f"{engine}:new"), scores)
                    for kind in ("due", "unknown"):
                        pipe.zrem(self._key(f"{engine}:{kind}"), *locs)
                pipe.execute()
        self._trim(engines)

    def _trim(self, engines: Collection[str]) -> None:
        """Drop the pages that were published first, beyond the most."""
        with answering():
            excess: Any = self._client.zrange(self._pages, 0, -self._most - 1)
        self.drop([loc.decode() for loc in excess], engines)

    def drop(self, locs: Iterable[str], engines: Iterable[str]) -> None:
        """Follow `locs` no longer: they are not listed any more."""
        engines = [*engines]
        for some in batches(locs, CHUNK):
            with answering():
                pipe = self._client.pipeline()
                pipe.zrem(self._pages, *some)
                pipe.hdel(self._published, *some)
                for engine in engines:
                    pipe.hdel(self._key(engine), *some)
                    for kind in ("new", "due", "unknown"):
                        pipe.zrem(self._key(f"{engine}:{kind}"), *some)
                pipe.execute()

    def ask_now(self, engine: str, locs: Sequence[str]) -> None:
        """Let `engine` be asked about these followed pages first."""
        with answering():
            self._client.zadd(self._key(f"{engine}:due"), dict.fromkeys(locs, 0))

    def due(self, engine: str, now_ms: int, first_ms: int, most: int) -> list[str]:
        """Return up to `most` pages that `engine` is to be asked about: those never asked about,
        the newest first, `first_ms` after their publish; then those it did not know.
        """
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.zrange(
                self._key(f"{engine}:new"), now_ms - first_ms, "-inf", desc=True, byscore=True,
                offset=0, num=most,
            )  # fmt: skip
            pipe.zrange(
                self._key(f"{engine}:due"), "-inf", now_ms, byscore=True, offset=0, num=most
            )
            new, again = pipe.execute()
        return [loc.decode() for loc in dict.fromkeys([*new, *again])][:most]

    def answered(
        self, engine: str, found: Mapping[str, IndexStatus], now_ms: int, least_ms: int
    ) -> dict[str, EngineAnswer]:
        """Store what `engine` said at `now_ms` of followed pages, and return it as stored; others
        are left out. An unknown page is asked about again after `least_ms`, or later.
        """
        given = {}
        for locs in batches(found, CHUNK):
            chains = self.read(locs, [engine])
            with answering():
                pipe = self._client.pipeline()
                for chain in chains:
                    given[chain.loc] = self._answer(pipe, engine, chain, found[chain.loc], now_ms,
                                                    least_ms)  # fmt: skip
                pipe.execute()
        return given

    def _answer(
        self, pipe: Pipeline, engine: str, chain: PageChain, status: IndexStatus, now_ms: int,
        least_ms: int,
    ) -> EngineAnswer:  # fmt: skip
        loc, page, before = chain.loc, chain.page, chain.answers.get(engine)
        known = knows(status, page)
        # Of the same publish: an answer before it is about another version of the page.
        first = before.known_ms if before and before.known_ms > page.published_ms else now_ms
        answer = EngineAnswer(now_ms, status, first if known else 0)
        new, due, unknown = (self._key(f"{engine}:{kind}") for kind in ("new", "due", "unknown"))
        pipe.hset(self._key(engine), loc, json.dumps(answer, separators=(",", ":")))
        pipe.zrem(new, loc)
        if known:
            pipe.zrem(due, loc)
            pipe.zrem(unknown, loc)
        else:
            pipe.zadd(due, {loc: next_ask_ms(page, now_ms, least_ms)})
            pipe.zadd(unknown, {loc: page.published_ms})
        return answer

    def read(self, locs: Sequence[str], engines: Iterable[str]) -> list[PageChain]:
        """Return those of `locs` that are followed, with the answers of `engines`."""
        engines = [*engines]
        if not locs:
            return []
        with answering():
            pipe = self._client.pipeline(transaction=False)
            for key in (self._published, *map(self._key, engines)):
                pipe.hmget(key, [*locs])
            published, *answers = pipe.execute()
        found = []
        for n, loc in enumerate(locs):
            page = _page(published[n])
            if page is not None:
                said = {name: _answer(of[n]) for name, of in zip(engines, answers, strict=True)}
                known = {name: answer for name, answer in said.items() if answer is not None}
                found.append(PageChain(loc, page, known))
        return found

    def newest(self, engines: Iterable[str], most: int) -> list[PageChain]:
        """Return the `most` pages that were published last, newest first."""
        with answering():
            locs: Any = self._client.zrange(
                self._pages, "+inf", "-inf", desc=True, byscore=True, offset=0, num=most
            )
        return self.read([loc.decode() for loc in locs], engines)

    def all(self, engines: Iterable[str]) -> Iterator[PageChain]:
        """Yield all followed pages, newest first."""
        engines = [*engines]
        with answering():
            locs: Any = self._client.zrange(self._pages, 0, -1)
        for some in batches((loc.decode() for loc in reversed(locs)), CHUNK):
            yield from self.read(some, engines)

    def late(
        self, engine: str, until_ms: int, most: int, engines: Iterable[str]
    ) -> list[PageChain]:
        """Return up to `most` pages that `engine` did not know and that were published before
        `until_ms`, those published first before others; with the answers of `engines`.
        """
        with answering():
            locs: Any = self._client.zrange(
                self._key(f"{engine}:unknown"), "-inf", until_ms, byscore=True, offset=0, num=most
            )
        return self.read([loc.decode() for loc in locs], engines)

    def counts(self, engines: Sequence[str], until_ms: int) -> dict[str, PageCounts]:
        """Return the numbers of pages of each engine; `late`: published before `until_ms`."""
        with answering():
            pipe = self._client.pipeline(transaction=False)
            for command in count_commands(self._key, engines, until_ms):
                pipe.execute_command(*command)  # type: ignore[no-untyped-call]
            return counts_of(engines, pipe.execute())

    def count(self) -> int:
        """Return the number of followed pages."""
        with answering():
            return int(self._client.zcard(self._pages))

    def forget(self, engines: Iterable[str]) -> None:
        """Delete everything of `engines`, and all followed pages."""
        kinds = ("", ":new", ":due", ":unknown")
        own = [self._key(f"{engine}{kind}") for engine in engines for kind in kinds]
        with answering():
            self._client.delete(self._pages, self._published, *own)


def count_commands(
    key: Callable[[str], str], engines: Iterable[str], until_ms: int
) -> Iterator[tuple[Any, ...]]:
    """Yield the commands whose replies `counts_of` takes; `key` names the keys of the site."""
    yield "ZCARD", key("pages")
    for engine in engines:
        yield "ZCARD", key(f"{engine}:new")
        yield "ZCARD", key(f"{engine}:unknown")
        yield "ZCOUNT", key(f"{engine}:unknown"), "-inf", until_ms


def counts_of(engines: Sequence[str], replies: Sequence[Any]) -> dict[str, PageCounts]:
    """Return the numbers of each engine."""
    followed, *rest = replies
    return {
        name: PageCounts(int(followed), *map(int, rest[3 * n : 3 * n + 3]))
        for n, name in enumerate(engines)
    }


def _page(stored: bytes | None) -> PublishedPage | None:
    """Return a stored page; None if there is none, or it is damaged."""
    try:
        section, changed, published, new = json.loads(stored or b"")
        return PublishedPage(str(section), int(changed), int(published), bool(new))
    except (ValueError, TypeError):
        return None


def _answer(stored: bytes | None) -> EngineAnswer | None:
    """Return a stored answer; None if there is none, or it is damaged: it is asked for again."""
    try:
        asked, (state, said, crawled), known = json.loads(stored or b"")
        status = IndexStatus(IndexState(state), str(said), int(crawled))
        return EngineAnswer(int(asked), status, int(known))
    except (ValueError, TypeError):
        return None
