"""The command `readback`: what engines know of the published pages."""

from __future__ import annotations

import random
from functools import partial
from typing import Annotated, Any

import typer

from deploy.cli.examples import examples
from deploy.cli.long_lists import SHOWN
from deploy.cli.output import (
    CommandTarget,
    HomeOption,
    JsonOption,
    SiteOption,
    answer,
    find,
    line,
    show,
    table,
)
from deploy.commands.admin import recorded
from shared.admin import read_back
from shared.admin.outcomes import counted
from shared.admin.read_back import FollowedPage, ReadBack
from shared.clock import now_ms
from shared.crawls.delays import spoken
from shared.errors import Fault, InvalidError, OutboundError, UrlError
from shared.sitemap import urls


@examples("sitemapd readback", "sitemapd readback https://www.example.com/a --site shop")
def readback(
    url: Annotated[str, typer.Argument(help="a page, which the engines are asked about now")] = "",
    unknown: Annotated[
        bool, typer.Option("--unknown", help="list the pages that an engine does not know for long")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="delete what is kept of the answers, and begin anew")
    ] = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show which published pages and sitemaps search engines know, and since when.

    Exit code 1 if there is something to look at: an engine that fails, or with URL or --unknown a
    page that is not known.
    """
    place = find(home, site)
    known = ReadBack(place.client(), place.name, place.site)
    if forget:
        _forget(place, known, as_json=as_json)
        return
    if not place.site.readback.engines:
        raise InvalidError(Fault(
            f"sites.{place.name}.readback", "configuration",
            "no engine is read back: add a table as [sites.NAME.readback.google]",
        ))  # fmt: skip
    if url:
        raise typer.Exit(_one(place, known, url, as_json=as_json))
    if unknown:
        raise typer.Exit(_late(known, as_json=as_json))
    states = known.states(now_ms())
    found = {
        "site": place.name, "engines": states, "sitemaps": [*known.sitemaps()],
        "sections": known.sections(),
    }  # fmt: skip
    pages = known.newest(SHOWN)
    if as_json:
        answer(found | {"pages": [read_back.plain(page) for page in pages]}, as_json=True)
    else:
        _show(found, pages)
    raise typer.Exit(1 if any(state["failing"] for state in states) else 0)


def _forget(place: CommandTarget, known: ReadBack, *, as_json: bool) -> None:
    with recorded(place.client(), "readback forget", place.name) as said:
        pages = known.forget()
        said(f"the answers about {counted(pages, 'page')} deleted")
    answer({"forgotten": pages}, as_json=as_json)


def _one(place: CommandTarget, known: ReadBack, url: str, *, as_json: bool) -> int:
    """Ask the engines about one page and print it; return the exit code."""
    from worker.http.client import ask
    from worker.http.exchange import READ_BACK
    from worker.readback.engine_reader import ReadingOverError
    from worker.readback.site_readback import SiteReadback

    try:
        loc = urls.canonical(url, place.site.base)
    except UrlError as error:
        raise InvalidError(Fault(url, f"PROTOCOL {error.rule}", error.detail)) from None
    reading = SiteReadback(
        place.client(), place.name, place.site, clock=now_ms,
        outbound=partial(ask, bounds=READ_BACK), jitter=random.random,
    )  # fmt: skip
    faults = {}
    for engine, reader in reading.readers.items():
        try:
            if reader.asked and reading.ask(engine, loc) is None:
                raise InvalidError(Fault(url, "page", "is not listed: see sitemapd entry"))
        except ReadingOverError:
            faults[engine] = "today's budget is spent"
        except OutboundError as error:
            faults[engine] = str(error)
    page = known.page(loc)
    if as_json:
        answer((read_back.plain(page) if page else {"loc": loc}) | {"faults": faults}, as_json=True)
    else:
        line(read_back.line_of(page) if page else f"{loc}  is not followed yet")
        for engine, why in faults.items():
            line(f"{engine}: {why}")
    answers = page.chain.answers.values() if page else ()
    return 1 if faults or not all(each.known_ms for each in answers) else 0


def _late(known: ReadBack, *, as_json: bool) -> int:
    """Print the pages that an engine does not know for long; return the exit code."""
    found = {engine: known.late(engine, now_ms(), SHOWN) for engine in known.engines}
    if as_json:
        answer({name: [*map(read_back.plain, pages)] for name, pages in found.items()},
               as_json=True)  # fmt: skip
    else:
        lines = dict.fromkeys(read_back.line_of(page) for pages in found.values() for page in pages)
        for each in lines:
            line(each)
    return 1 if any(found.values()) else 0


def _show(found: dict[str, Any], pages: list[FollowedPage]) -> None:
    _show_engines(found["engines"])
    rows = (
        (each["engine"], each["sitemap"], each["read"] or "never", _of(each["errors"]),
         _of(each["warnings"]), _of(each["urls"]), each["said"])
        for each in found["sitemaps"][:SHOWN]
    )  # fmt: skip
    if found["sitemaps"]:
        heads = ("engine", "sitemap", "read", "errors", "warnings", "URLs", "")
        show(table(heads, rows))
        if (more := len(found["sitemaps"]) - SHOWN) > 0:
            line(f"and {more:,} more; --json has all of them")
    delays = (
        (each["section"], each["engine"], f"{each['known']} of {each['pages']}",
         *(spoken(each[f"{kind}_p{share}_s"]) for kind in ("crawled", "known")
           for share in (50, 95)))
        for each in found["sections"]
    )  # fmt: skip
    if found["sections"]:
        heads = ("section", "engine", "known", "crawled p50", "p95", "known p50", "p95")
        show(table(heads, delays))
    for page in pages:
        line(read_back.line_of(page))


def _show_engines(engines: list[dict[str, Any]]) -> None:
    heads = ("engine", "known", "unknown", "for long", "never asked", "requests today", "last read")
    names = ("known", "unknown", "unknown_late", "never_asked")
    rows = (
        (each["engine"], *(_of(each[name]) for name in names),
         f"{each['requests_today']:,} of {each['daily']:,}", each["last_read"] or "never")
        for each in engines
    )  # fmt: skip
    show(table(heads, rows))
    for each in engines:
        if each["reason"]:
            state = "fails" if each["failing"] else "asked us to wait"
            until = f", asked again {each['resting_until']}" if each["resting_until"] else ""
            line(f"{each['engine']} {state}{until}: {each['reason']}")


def _of(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
