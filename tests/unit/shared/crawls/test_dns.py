"""Whether a crawler is whom it claims to be, by lookups there and back."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from shared.crawls import dns
from shared.crawls.crawlers import BY_NAME, CrawlerEngine
from shared.crawls.dns import CLAIMED, FAKE, GENUINE, UNANSWERED, CrawlerVerifier, Resolver

GOOGLE, GPT = BY_NAME["Googlebot"], BY_NAME["GPTBot"]
NAMES = {
    "66.249.66.1": ["crawl-66-249-66-1.googlebot.com"],
    "66.249.90.77": ["rate-limited-proxy-66-249-90-77.GOOGLE.com."],
    "203.0.113.1": ["crawl-66-249-66-1.googlebot.com"],  # named so by whoever owns the address
    "203.0.113.2": ["host.example.net"],
    "203.0.113.3": [],
    "203.0.113.5": ["evilgooglebot.com"],
    "203.0.113.6": ["crawl.googlebot.com.example.net"],
    "2001:4860:4801::1": ["crawl6.googlebot.com"],
}
ADDRESSES = {
    "crawl-66-249-66-1.googlebot.com": ["66.249.66.1"],
    "rate-limited-proxy-66-249-90-77.google.com": ["66.249.90.77"],
    "host.example.net": ["203.0.113.2"],
    "evilgooglebot.com": ["203.0.113.5"],
    "crawl.googlebot.com.example.net": ["203.0.113.6"],
    "crawl6.googlebot.com": ["2001:4860:4801::1"],
}


class Zone:
    """The names above, and every question that was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def names(self, address: str) -> Sequence[str]:
        self.asked.append(address)
        if address not in NAMES:
            raise OSError("no server answers")
        return NAMES[address]

    def addresses(self, name: str) -> Sequence[str]:
        return ADDRESSES[name]

    @property
    def resolver(self) -> Resolver:
        return Resolver(self.names, self.addresses)


@pytest.mark.parametrize(
    ("engine", "address", "verdict"),
    [
        (GOOGLE, "66.249.66.1", GENUINE),
        (GOOGLE, "66.249.90.77", GENUINE),
        (GOOGLE, "2001:4860:4801:0:0:0:0:1", GENUINE),
        (GOOGLE, "203.0.113.1", FAKE),
        (GOOGLE, "203.0.113.2", FAKE),
        (GOOGLE, "203.0.113.3", FAKE),
        (GOOGLE, "203.0.113.5", FAKE),
        (GOOGLE, "203.0.113.6", FAKE),
        (GOOGLE, "203.0.113.99", UNANSWERED),
        (GOOGLE, "crawl-66-249-66-1.googlebot.com", UNANSWERED),
        (GOOGLE, "", UNANSWERED),
        (BY_NAME["Bingbot"], "66.249.66.1", FAKE),
        (GPT, "203.0.113.2", CLAIMED),
    ],
)
def test_the_name_must_be_the_operators_and_lead_back(
    engine: CrawlerEngine, address: str, verdict: str
) -> None:
    assert CrawlerVerifier(Zone().resolver).verdict(engine, address) == verdict


def test_each_address_is_asked_about_once() -> None:
    zone = Zone()
    verifier = CrawlerVerifier(zone.resolver)

    for _ in range(3):
        assert verifier.verdict(GOOGLE, "66.249.66.1") == GENUINE
        assert verifier.verdict(BY_NAME["Bingbot"], "66.249.66.1") == FAKE
        assert verifier.verdict(GOOGLE, "203.0.113.99") == UNANSWERED
        assert verifier.verdict(GPT, "203.0.113.2") == CLAIMED

    assert zone.asked == ["66.249.66.1", "203.0.113.99"]


def test_lookups_that_hang_are_given_up_one_by_one_and_altogether() -> None:
    end, asked = threading.Event(), []

    def names(address: str) -> Sequence[str]:
        asked.append(address)
        end.wait(60)
        return ()

    verifier = CrawlerVerifier(Resolver(names, lambda _: ()), lookup_s=0.05, budget_s=0.12)
    try:
        found = {verifier.verdict(GOOGLE, f"203.0.113.{n}") for n in range(50)}
    finally:
        end.set()

    assert found == {UNANSWERED}
    assert 1 <= len(asked) <= 3


def test_the_system_resolver_knows_this_machine_both_ways() -> None:
    names = dns.SYSTEM.names("127.0.0.1")
    if not names:
        pytest.skip("127.0.0.1 has no name here")
    here = CrawlerEngine("Here", ("here",), (names[0],), "")

    assert CrawlerVerifier().verdict(here, "127.0.0.1") == GENUINE
    assert CrawlerVerifier().verdict(GOOGLE, "127.0.0.1") == FAKE
