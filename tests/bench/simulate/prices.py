"""List prices, and what a scenario costs a month: change the figures here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tests.bench.simulate.outcome import Outcome

MONTH_S, HOURS = 30.4 * 24 * 3600, 730
CRAWLS_A_DAY = 2
"""How often crawlers fetch all files, deflated."""


class Machine(NamedTuple):
    """One machine on the list, with its price a month."""

    name: str
    processors: int
    memory_gb: float
    price: float


class Offer(NamedTuple):
    """A list of prices: machines, a GB of disk a month, a GB sent beyond the free ones."""

    name: str
    currency: str
    source: str
    machines: Sequence[Machine]
    disk_gb: float
    sent_gb: float
    free_gb: float


def _m7g(name: str, processors: int) -> Machine:
    # The price of the family is proportional to its size; m7g.large has 2.
    return Machine(f"m7g.{name}", processors, processors * 4, 0.0816 / 2 * processors * HOURS)


OFFERS = (
    Offer(
        "AWS, us-east-1, on demand", "$",
        "EC2 m7g.large $0.0816 an hour, gp3 $0.08, sent $0.09 a GB after 100; lists of June 2026",
        tuple(
            _m7g(*each)
            for each in (("large", 2), ("xlarge", 4), ("2xlarge", 8), ("4xlarge", 16),
                         ("8xlarge", 32), ("12xlarge", 48), ("16xlarge", 64))
        ),
        0.08, 0.09, 100,
    ),
    Offer(
        "Hetzner Cloud, Germany, net", "EUR",
        "interface of prices, 27 May 2026; shared processors. New orders cost more since 15 June",
        (Machine("CX23", 2, 4, 3.99), Machine("CX33", 4, 8, 6.49), Machine("CX43", 8, 16, 12.0),
         Machine("CX53", 16, 32, 22.56)),
        0.0572, 0.001, 20_000,
    ),
)  # fmt: skip


class Item(NamedTuple):
    """One line of a bill."""

    what: str
    price: float


def bill(outcome: Outcome, offer: Offer, gzip_bytes: float) -> list[Item] | None:
    """Return the lines of a month of `offer`; None if one of its machines would be too large."""
    scenario = outcome.scenario
    # A processor for each process, one more for nginx, the system and what is flushed.
    web, workers = scenario.web + 1, math.ceil(scenario.workers / scenario.hosts) + 1
    parts = (
        ("web", 1, web, 1 + 0.25 * scenario.web),
        ("workers and files", scenario.hosts, workers, 2 + 0.5 * workers),
        ("Redis", scenario.masters, 2, scenario.redis_gb),
    )
    items = []
    for what, count, processors, memory in parts:
        chosen = cheapest(offer, processors, memory)
        if chosen is None:
            return None
        each, machine = chosen
        items.append(Item(f"{what}: {count * each} {machine.name}", count * each * machine.price))
    # Redis: its memory three times, for two logs while one is rewritten; files twice.
    disk = 3 * sum(outcome.memory.values()) + 2 * outcome.web_root
    items.append(Item(f"disks: {disk / 1e9:,.0f} GB", disk / 1e9 * offer.disk_gb))
    sent = sent_gb(outcome, gzip_bytes)
    free = max(0.0, sent - offer.free_gb)
    items.append(Item(f"sent: {sent:,.0f} GB", free * offer.sent_gb))
    return items


def sent_gb(outcome: Outcome, gzip_bytes: float) -> float:
    """Return the gigabytes a month that leave for crawlers and senders."""
    files = outcome.scenario.urls * gzip_bytes * CRAWLS_A_DAY * 30.4
    answers = outcome.senders_s * outcome.scenario.mean / 4 * MONTH_S
    return (files + answers) / 1e9


def cheapest(offer: Offer, processors: int, memory_gb: float) -> tuple[int, Machine] | None:
    """Return the cheapest way to so many processors and gigabytes on equal machines.

    Processes are spread over several machines, memory is not: None if none has that much.
    """
    fit = [each for each in offer.machines if each.memory_gb >= memory_gb]
    found = [(math.ceil(processors / each.processors), each) for each in fit]
    return min(found, key=lambda each: each[0] * each[1].price, default=None)
