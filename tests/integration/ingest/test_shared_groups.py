"""Translation groups whose pages are on several sites: all list the identical set."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest
import redis
from lxml import etree

from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.domain.translation_groups import GROUP
from shared.errors import StoreDownError, StoreError
from shared.events.event import Event, parse
from tests.integration.conftest import RedisServer
from tests.integration.rig import NS, check_keys
from worker.checks.verify import Verification
from worker.runtime import Runtime

LINK = "{http://www.w3.org/1999/xhtml}link"
SITES = {
    "de": "https://www.example.de/",
    "fr": "https://www.example.fr/",
    "uk": "https://example.uk/",
}
Listed = dict[str, dict[str, str]]


class Family:
    """Several sites of one installation, and a worker for all of them."""

    def __init__(
        self, server: RedisServer, client: redis.Redis, root: Path, **of: dict[str, Any]
    ) -> None:
        self.url, self.client, self.root = server.url_of("worker"), client, root
        self.follow(**of)

    def follow(self, **of: dict[str, Any]) -> None:
        """The sites are configured like this from now on; the worker knows."""
        sites = {}
        for name, base in SITES.items():
            given: dict[str, Any] = {
                "base_url": base, "web_root": self.root / name, "tokens": ("0123456789abcdef",),
                "publish_interval": 0, "translations": "brand",
            }  # fmt: skip
            (self.root / name).mkdir(exist_ok=True, parents=True)
            sites[name] = Site(**(given | of.get(name, {})))
        self.settings = Settings(sites=sites, linger=0.005, redis_url=self.url)
        self.runtime = Runtime(self.settings, "w1", reconciles=False)

    def send(self, site: str, *items: dict[str, Any]) -> None:
        """`site` gets events, and all work is done."""
        self.wake(site, *items)
        self.settle()

    def wake(self, site: str, *items: dict[str, Any]) -> None:
        """`site` gets events, and its worker a wake-up."""
        events = [self.event(site, item) for item in items]
        consumer = self.runtime._sites.find(site)
        assert consumer is not None
        consumer.inbox.accept(events)
        self.runtime.wake(site)

    def event(self, site: str, item: dict[str, Any]) -> Event:
        members = {"type": "upsert", **item, "loc": SITES[site] + item["loc"]}
        return parse(members, self.settings.sites[site].rules)

    def settle(self) -> None:
        """Sweeps until nothing is due any more."""
        deadline = time.monotonic() + 30
        while self.due() or self.dirty():
            assert time.monotonic() < deadline, "work is left"
            self.runtime.sweep()

    def due(self) -> list[bytes]:
        return [key for name in SITES for key in self.client.zrange(f"{{{name}}}:expiry", 0, -1)]

    def dirty(self) -> int:
        return sum(int(self.client.zcard(f"{{{name}}}:dirty")) for name in SITES)

    def listed(self, site: str) -> Listed:
        """Links of each page of a site, by code."""
        found: Listed = {}
        for path in (self.root / site).glob("pages-*.xml"):
            for url in etree.fromstring(path.read_bytes()):
                links = {each.get("hreflang"): each.get("href") for each in url.iter(LINK)}
                found[url.findtext(f"{NS}loc")] = links
        return found

    def all(self) -> Listed:
        return {loc: links for site in SITES for loc, links in self.listed(site).items()}

    def check(self) -> None:
        """Each site agrees with itself, and what one lists of others with them."""
        check_keys(self.client)
        for name, site in self.settings.sites.items():
            assert not list(Verification(self.client, name, site, "audit").verify()), name
        pages = self.all()
        for loc, links in pages.items():
            assert not links or loc in links.values()
            assert all(pages[href] == links for href in links.values()), loc


@pytest.fixture
def family(redis_server: RedisServer, store: redis.Redis, tmp_path: Path) -> Family:
    return Family(redis_server, store, tmp_path)


def page(loc: str, lang: str = "", group: str = "home", **members: Any) -> dict[str, Any]:
    return {"loc": loc, **({"group": group, "lang": lang} if lang else {}), **members}


def delete(loc: str) -> dict[str, Any]:
    return {"type": "delete", "loc": loc}


HOME = {"de": SITES["de"], "en": SITES["uk"], "fr": SITES["fr"]}


def test_the_versions_on_several_sites_list_each_other_within_one_wake_up(family: Family) -> None:
    for site, lang in (("de", "de"), ("fr", "fr"), ("uk", "en")):
        family.wake(site, page("", lang), page("about"))

    for site, base in SITES.items():
        assert family.listed(site) == {base: HOME, f"{base}about": {}}
    family.check()
    assert not family.due()


def test_a_version_that_leaves_or_changes_its_language_changes_all(family: Family) -> None:
    for site, lang in (("de", "de"), ("fr", "fr"), ("uk", "en")):
        family.send(site, page("", lang))

    family.send("fr", delete(""))
    assert family.listed("de")[SITES["de"]] == {"de": SITES["de"], "en": SITES["uk"]}
    family.check()
    family.send("uk", page("", "en-GB"))
    assert family.listed("de")[SITES["de"]] == {"de": SITES["de"], "en-GB": SITES["uk"]}
    family.send("uk", page(""))
    assert family.listed("de") == {SITES["de"]: {}}
    family.check()


def test_of_two_sites_that_claim_one_language_the_later_event_counts(family: Family) -> None:
    now = int(time.time()) * 1000
    family.send("fr", page("", "fr"))
    family.send("de", page("", "de", version=now))
    family.send("uk", page("", "de", version=now - 1))

    assert family.listed("fr")[SITES["fr"]] == {"de": SITES["de"], "fr": SITES["fr"]}
    assert family.listed("uk") == {SITES["uk"]: {}}
    family.send("uk", page("", "de", version=now + 1))
    assert family.listed("fr")[SITES["fr"]] == {"de": SITES["uk"], "fr": SITES["fr"]}
    family.check()


def test_sites_of_another_name_share_nothing(
    redis_server: RedisServer, store: redis.Redis, tmp_path: Path
) -> None:
    family = Family(redis_server, store, tmp_path, uk={"translations": ""})
    for site, lang in (("de", "de"), ("fr", "fr"), ("uk", "en")):
        family.send(site, page("", lang))

    two = {"de": SITES["de"], "fr": SITES["fr"]}
    assert family.all() == {SITES["de"]: two, SITES["fr"]: two, SITES["uk"]: {}}
    assert not family.due()


def test_a_site_that_joins_hears_of_all_groups_and_one_that_leaves_is_forgotten(
    redis_server: RedisServer, store: redis.Redis, tmp_path: Path
) -> None:
    family = Family(redis_server, store, tmp_path, uk={"translations": ""})
    for site, lang in (("de", "de"), ("fr", "fr"), ("uk", "en")):
        family.send(site, page("", lang))

    family.follow()
    family.settle()
    assert dict.fromkeys(HOME.values(), HOME) == family.all()
    family.check()
    family.follow(fr={"translations": ""})
    family.runtime.upkeep.tidy()
    family.settle()
    two = {"de": SITES["de"], "en": SITES["uk"]}
    assert family.all() == {SITES["de"]: two, SITES["uk"]: two, SITES["fr"]: {}}
    family.check()


def test_a_partner_that_cannot_be_told_is_told_later_and_holds_up_no_other(
    family: Family,
) -> None:
    for site, lang in (("fr", "fr"), ("uk", "en")):
        family.send(site, page("", lang))
    family.client.set("{uk}:dirty", "no zset")

    with pytest.raises(StoreError, match="uk could not be told of translation groups"):
        family.wake("de", page("", "de"))

    assert family.listed("fr") == {SITES["fr"]: HOME}
    (late,) = family.due()
    assert late.startswith(GROUP.encode())
    family.client.delete("{uk}:dirty")
    family.client.zadd("{de}:expiry", {late: 1})
    family.settle()
    assert dict.fromkeys(HOME.values(), HOME) == family.all()
    family.check()


def test_a_worker_that_dies_before_it_told_is_made_up_for_by_the_next_sweep(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    family.send("fr", page("", "fr"))
    consumer = family.runtime._sites.find("de")
    assert consumer is not None

    def dies(*_: object) -> None:
        raise StoreDownError("the connection is gone")

    with monkeypatch.context() as patch:
        patch.setattr(consumer.expiry.groups, "tell", dies)
        with pytest.raises(StoreDownError):
            family.wake("de", page("", "de"))
    assert family.listed("fr") == {SITES["fr"]: {}}

    family.settle()
    assert family.listed("fr")[SITES["fr"]] == {"de": SITES["de"], "fr": SITES["fr"]}
    family.check()


def test_a_rebuild_of_one_site_keeps_the_members_of_the_others(family: Family) -> None:
    for site, lang in (("de", "de"), ("fr", "fr"), ("uk", "en")):
        family.send(site, page("", lang))
    (name,) = family.client.scan_iter("{de}:cluster:*")
    family.client.hdel(name, SITES["de"])

    Verification(family.client, "de", family.settings.sites["de"], "audit").rebuild()
    family.settle()

    assert dict.fromkeys(HOME.values(), HOME) == family.all()
    family.check()


@pytest.mark.parametrize("seed", range(3))
def test_any_histories_on_three_sites_end_in_reciprocal_sets(family: Family, seed: int) -> None:
    rand = random.Random(seed)
    state: dict[str, tuple[str, str]] = {}
    for _ in range(50):
        site = rand.choice(list(SITES))
        path, group = f"p{rand.randrange(3)}", rand.choice(["g", "h", ""])
        lang = f"{rand.choice(['de', 'en', 'fr', 'it'])}"
        if rand.random() < 0.25:
            family.wake(site, delete(path))
            state.pop(SITES[site] + path, None)
        else:
            family.wake(site, page(path, lang if group else "", group))
            state[SITES[site] + path] = (group, lang)
    family.settle()

    pages = family.all()
    assert pages.keys() == state.keys()
    family.check()
    for loc, (group, lang) in state.items():
        rivals = [other for other, said in state.items() if said == (group, lang)]
        codes = {code for said, code in state.values() if said == group}
        if group and len(codes) > 1 and rivals == [loc]:
            assert pages[loc].keys() == codes
