"""Known crawlers: their user agents, and the DNS domains that verify them.

Any client can claim any user agent. Some operators name the DNS domains of their crawlers (reverse
lookup, then forward, must lead back to the address); others publish address lists, which change
and are not read here: these crawlers are always counted as they claim.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple


class CrawlerEngine(NamedTuple):
    """One crawler.

    `tokens` are parts of its user agent, in lower case. `domains` are the DNS domains of its
    addresses, empty if its operator documents none; `addresses` is the list published instead.
    `source` is the operator's page with this information.
    """

    name: str
    tokens: tuple[str, ...]
    domains: tuple[str, ...]
    source: str
    addresses: str = ""


_GOOGLE = "https://developers.google.com/search/docs/crawling-indexing/verifying-googlebot"
_GOOGLE_DOMAINS = ("googlebot.com", "google.com")
_OPENAI = "https://platform.openai.com/docs/bots"
_ANTHROPIC = (
    "https://support.anthropic.com/en/articles/8896518-does-anthropic-crawl-data-from-the-web"
    "-and-how-can-site-owners-block-the-crawler"
)

ENGINES = (
    # Images, videos and news have separate agents, all with this token.
    CrawlerEngine("Googlebot", ("googlebot",), _GOOGLE_DOMAINS, _GOOGLE),
    # An inspection of the page in Search Console, no crawl: never mixed with the above.
    CrawlerEngine("Google-InspectionTool", ("google-inspectiontool",), _GOOGLE_DOMAINS, _GOOGLE),
    CrawlerEngine("GoogleOther", ("googleother",), _GOOGLE_DOMAINS, _GOOGLE),
    CrawlerEngine(
        "Bingbot", ("bingbot",), ("search.msn.com",),
        "https://www.bing.com/webmasters/help/how-to-verify-bingbot-3905dc26",
    ),
    CrawlerEngine(
        "YandexBot",
        ("yandexbot", "yandexmobilebot", "yandexrenderresourcesbot", "yandeximages", "yandexvideo"),
        ("yandex.ru", "yandex.net", "yandex.com"),
        "https://yandex.com/support/webmaster/robot-workings/check-yandex-robots.html",
    ),
    CrawlerEngine(
        "Baiduspider", ("baiduspider",), ("baidu.com", "baidu.jp"),
        "https://help.baidu.com/question?prod_id=99&class=476&id=2996",
    ),
    CrawlerEngine(
        "Yeti", ("yeti/",), ("naver.com",),
        "https://searchadvisor.naver.com/guide/seo-basic-firewall",
    ),
    CrawlerEngine(
        "SeznamBot", ("seznambot",), ("seznam.cz",),
        "https://napoveda.seznam.cz/en/seznambot-crawler",
    ),
    CrawlerEngine(
        "Applebot", ("applebot",), ("applebot.apple.com",), "https://support.apple.com/en-us/119829"
    ),
    CrawlerEngine(
        "Amazonbot", ("amazonbot",), ("crawl.amazonbot.amazon",),
        "https://developer.amazon.com/support/amazonbot",
    ),
    CrawlerEngine(
        "DuckDuckBot", ("duckduckbot",), (),
        "https://duckduckgo.com/duckduckgo-help-pages/results/duckduckbot",
        "https://duckduckgo.com/duckduckbot.json",
    ),
    CrawlerEngine("OAI-SearchBot", ("oai-searchbot",), (), _OPENAI, "https://openai.com/searchbot.json"),
    CrawlerEngine("GPTBot", ("gptbot",), (), _OPENAI, "https://openai.com/gptbot.json"),
    CrawlerEngine("ClaudeBot", ("claudebot",), (), _ANTHROPIC),
    CrawlerEngine("Claude-SearchBot", ("claude-searchbot",), (), _ANTHROPIC),
    CrawlerEngine(
        "PerplexityBot", ("perplexitybot",), (), "https://docs.perplexity.ai/guides/bots",
        "https://www.perplexity.com/perplexitybot.json",
    ),
)  # fmt: skip

BY_NAME = {engine.name: engine for engine in ENGINES}
TOKENS = {token: engine for engine in ENGINES for token in engine.tokens}
_ANY = re.compile("|".join(map(re.escape, TOKENS)))


# A log of millions of lines has some hundred user agents.
@lru_cache(4096)
def engine_of(agent: str) -> CrawlerEngine | None:
    """The crawler that a user agent claims to be: the first it names; None if it names none."""
    found = _ANY.search(agent.lower())
    return TOKENS[found[0]] if found else None
