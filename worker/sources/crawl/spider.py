"""The process that crawls: reads its options from standard input and writes pages.ndjson.

robots.txt is obeyed, and so are `noindex`, `nofollow` and canonical addresses. Only pages of the
site of the first one, below its directory, are asked for, at any hop of a redirect.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.linkextractors import LinkExtractor

AGENT = "sitemapd"
PAGES = "pages.ndjson"
ENDED = "ended.json"
"""Says why the crawl ended: written only by an orderly end, from which it can be resumed."""

_GONE = frozenset({404, 410})
_MOST_BYTES = 10 * 1024 * 1024
_SILENCE_S = 30


class SiteSpider(Spider):
    """Spider of one site."""

    name = "sitemapd"

    def __init__(self, options: dict[str, Any], folder: str) -> None:
        super().__init__()
        self._start = str(options["start"])
        self._below = self._start[: self._start.rfind("/") + 1]
        self._links = LinkExtractor(canonicalize=False, unique=True)
        self._file = (Path(folder) / PAGES).open("a", encoding="utf-8")

    async def start(self) -> AsyncIterator[Request]:
        """Yield the first request."""
        yield self._request(self._start)

    def closed(self, reason: str) -> None:
        """Scrapy calls this at the end."""
        self._file.close()
        said = json.dumps({"reason": reason})
        (Path(self._file.name).parent / ENDED).write_text(said, encoding="utf-8")

    def parse(self, response: Response) -> Iterator[Request]:
        """Write what is known of a page, and yield the requests of its links."""
        if response.status in _GONE:
            return  # a broken link is no page
        if response.status != 200:
            self._say(response.url, why=f"the server answered {response.status}", rule="crawl")
            return
        if not isinstance(response, HtmlResponse):
            return
        rules = _rules(response)
        canonical = _canonical(response)
        if rules & {"noindex", "none"}:
            self._say(response.url, why="the page is marked noindex", rule="L8")
        elif canonical not in {"", response.url}:
            self._say(response.url, why="the page names another canonical address", rule="L8")
        else:
            self._say(response.url, lastmod=_last_modified(response))
        if canonical and self._is_mine(canonical):
            yield self._request(canonical)
        if not rules & {"nofollow", "none"}:
            for link in self._links.extract_links(response):
                if not link.nofollow and self._is_mine(link.url):
                    yield self._request(urldefrag(link.url).url)

    def failed(self, failure: Any) -> None:
        """Write that a page is unknown, unless robots.txt forbids it or it is elsewhere."""
        if not failure.check(IgnoreRequest):
            why = f"no answer: {failure.type.__name__}"
            self._say(failure.request.url, why=why, rule="crawl")

    def _request(self, url: str) -> Request:
        return Request(url, callback=self.parse, errback=self.failed)

    def _is_mine(self, url: str) -> bool:
        return url.startswith(self._below)

    def _say(self, loc: str, **members: str | None) -> None:
        if self._is_mine(loc):
            self._file.write(json.dumps({"loc": loc, **members}) + "\n")
            self._file.flush()


class OwnSiteOnly:
    """Downloader middleware: drops what leads to another site, redirects included (T22)."""

    def __init__(self, below: str) -> None:
        self._below, self._origin = below, below[: below.find("/", below.find("://") + 3) + 1]

    @classmethod
    def from_crawler(cls, crawler: Any) -> OwnSiteOnly:
        """Scrapy makes it by this."""
        return cls(crawler.settings["SITE_BELOW"])

    def process_request(self, request: Request) -> None:
        """Let robots.txt of the site and its pages pass."""
        if not request.url.startswith(self._below) and request.url != f"{self._origin}robots.txt":
            raise IgnoreRequest("another site")


def _rules(response: TextResponse) -> set[str]:
    """Return what the page says to robots: in its meta element, or in X-Robots-Tag."""
    told = response.xpath(
        "//meta[translate(@name,'ROBTS','robts')='robots' or @name='googlebot']/@content"
    ).getall()
    # A tag for one crawler, `otherbot: noindex`, is none for us.
    for value in response.headers.getlist("X-Robots-Tag"):
        text = value.decode("latin-1")
        told.append("" if ":" in text.partition(",")[0] else text)
    return {word.strip().lower() for text in told for word in text.split(",")}


def _canonical(response: TextResponse) -> str:
    found = response.xpath("//link[contains(concat(' ',@rel,' '),' canonical ')]/@href").get()
    for value in response.headers.getlist("Link"):
        for part in value.decode("latin-1").split(","):
            target, _, more = part.strip().partition(">")
            if found is None and "canonical" in more and target.startswith("<"):
                found = target[1:]
    try:
        return urldefrag(urljoin(response.url, (found or "").strip())).url if found else ""
    except ValueError:
        return ""


def _last_modified(response: Response) -> str | None:
    given = response.headers.get("Last-Modified")
    try:
        found = None if given is None else parsedate_to_datetime(given.decode("latin-1"))
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC).isoformat() if found else None


def settings(options: dict[str, Any], folder: str) -> dict[str, Any]:
    """Return the settings of Scrapy: slow, polite, resumable, and quiet."""
    start = str(options["start"])
    user, _, password = str(options["key"]).partition(":")
    return {
        "AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 1 / options["rate"],
        "CLOSESPIDER_PAGECOUNT": options["pages"] + 1,  # and robots.txt
        "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
        "COOKIES_ENABLED": False, "DEPTH_LIMIT": options["depth"],
        "DOWNLOAD_DELAY": 1 / options["rate"], "DOWNLOAD_MAXSIZE": _MOST_BYTES,
        "DOWNLOAD_TIMEOUT": _SILENCE_S, "HTTPERROR_ALLOW_ALL": True, "JOBDIR": f"{folder}/job",
        "DOWNLOADER_MIDDLEWARES": {OwnSiteOnly: 50},
        # No domain: OwnSiteOnly lets no other server be asked.
        "HTTPAUTH_USER": user, "HTTPAUTH_PASS": password, "HTTPAUTH_DOMAIN": None,
        "LOG_ENABLED": False, "REDIRECT_MAX_TIMES": 5, "REFERER_ENABLED": False,
        "RETRY_TIMES": 2, "ROBOTSTXT_OBEY": True, "ROBOTSTXT_USER_AGENT": AGENT,
        "SITE_BELOW": start[: start.rfind("/") + 1], "TELNETCONSOLE_ENABLED": False,
        "USER_AGENT": f"{AGENT} (+import of the site's own pages)",
    }  # fmt: skip


def main() -> None:
    """Crawl by the options on standard input."""
    said = json.load(sys.stdin)
    process = CrawlerProcess(settings(said["options"], said["folder"]))
    process.crawl(SiteSpider, options=said["options"], folder=said["folder"])
    process.start()


if __name__ == "__main__":
    main()
