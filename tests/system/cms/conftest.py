"""Each CMS, running and connected to a running sitemapd."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from email.message import Message
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.system.cms.desk import Desk
from tests.system.cms.directus import RELEASES, Directus
from tests.system.cms.directus import WHERE as DIRECTUS_WHERE
from tests.system.cms.front import Front
from tests.system.cms.ghost import FIVE, SIX, Ghost
from tests.system.cms.payload import WHERE as PAYLOAD_WHERE
from tests.system.cms.payload import Payload
from tests.system.cms.strapi import Strapi
from tests.system.cms.vendors import CONFIG as VENDORS
from tests.system.cms.vendors import PINS, Packages, Service
from tests.system.cms.wagtail import Wagtail
from tests.system.driver import System

SECRET = "only-for-these-tests"
STANDARD = "whsec_b25seS1mb3ItdGhlc2UtdGVzdHMtb25seQ=="
GHOST = f"""\
[sites.demo.sources.ghost]
secret = "{SECRET}"
sections = {{ post = "posts" }}
permalinks = {{ tag = "/tag/{{slug}}/", page = "/{{slug}}/" }}
"""
STRAPI = f"""\
[sites.demo.sources.strapi]
secret = "{SECRET}"
sections = {{ article = "posts" }}
permalinks = {{ article = "/{{locale}}/articles/{{slug}}", product = "/products/{{slug}}" }}
"""
DIRECTUS = f"""\
[sites.demo.sources.directus]
secret = "{SECRET}"
sections = {{ articles = "posts" }}
permalinks = {json.dumps(DIRECTUS_WHERE).replace('": ', '" = ')}
"""
PAYLOAD = f"""\
[sites.demo.sources.payload]
sections = {{ posts = "posts" }}
locales = ["en", "de"]
permalinks = {json.dumps(PAYLOAD_WHERE).replace('": ', '" = ')}
"""
HOOK = "/v1/sites/demo/hooks/"


def _named_in_address(path: str, _headers: Message, _body: bytes) -> str:
    return parse_qs(urlsplit(path).query)["event"][0]


def _named_in_header(_path: str, headers: Message, _body: bytes) -> str:
    return str(headers["x-strapi-event"])


def _named_in_body(_path: str, _headers: Message, body: bytes) -> str:
    said = json.loads(body)
    return " ".join(event["type"] for event in (said if isinstance(said, list) else [said]))


def _triggered(_path: str, _headers: Message, body: bytes) -> str:
    return str(json.loads(body)["trigger"]["event"])


def _operated(_path: str, _headers: Message, body: bytes) -> str:
    said = json.loads(body)
    return f"{said['operation']} {said['collection']}"


@pytest.fixture(params=[FIVE, SIX], ids=lambda release: release.version)
def ghost(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Desk, Ghost]]:
    """Ghost and the desk of its editor."""
    with ExitStack() as held:
        front = held.enter_context(closing(Front(_named_in_address)))
        hook = front.url + HOOK + "ghost"
        cms = Ghost(request.param, tmp_path / "ghost", front.url, hook, SECRET)
        held.callback(cms.close)
        front.cms = cms.address
        desk = Desk(tmp_path / "home", front, GHOST)
        held.callback(desk.close)
        cms.set_up()
        yield desk, cms


@pytest.fixture
def strapi(tmp_path: Path) -> Iterator[tuple[Desk, Strapi]]:
    """Strapi and the desk of its editor."""
    with ExitStack() as held:
        front = held.enter_context(closing(Front(_named_in_header)))
        cms = Strapi(tmp_path / "strapi", front.url)
        held.callback(cms.close)
        front.cms = cms.address
        desk = Desk(tmp_path / "home", front, STRAPI)
        held.callback(desk.close)
        cms.set_up(front.url + HOOK + "strapi", SECRET)
        yield desk, cms


@pytest.fixture(params=RELEASES)
def directus(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Desk, Directus]]:
    """Directus, connected as `sitemapd connect` says, and the desk of its editor."""
    with ExitStack() as held:
        front = held.enter_context(closing(Front(_triggered)))
        cms = Directus(request.param, tmp_path / "directus", front.url)
        held.callback(cms.close)
        front.cms = cms.address
        desk = Desk(tmp_path / "home", front, DIRECTUS)
        held.callback(desk.close)
        cms.set_up(desk.system.run("connect", "directus", "--to", front.url).stdout)
        yield desk, cms


@pytest.fixture
def payload(tmp_path: Path) -> Iterator[tuple[Desk, Payload]]:
    """Payload with the printed hooks and environment, and the desk of its editor."""
    with ExitStack() as held:
        front = held.enter_context(closing(Front(_operated)))
        cms = Payload(tmp_path / "payload", front.url)
        front.cms = cms.address
        desk = Desk(tmp_path / "home", front, PAYLOAD)
        held.callback(desk.close)
        client = desk.system.run("connect", "payload", "--client").stdout
        cms.start(client, desk.system.run("connect", "payload", "--to", front.url).stdout)
        held.callback(cms.close)
        yield desk, cms


@pytest.fixture
def wagtail(tmp_path: Path) -> Iterator[tuple[Desk, Wagtail]]:
    """Wagtail and the desk of its editor."""
    with ExitStack() as held:
        front = held.enter_context(closing(Front(_named_in_body)))
        hook = front.url + HOOK + "wagtail"
        cms = Wagtail(tmp_path / "wagtail", front.url, hook, STANDARD)
        held.callback(cms.close)
        front.cms = cms.address
        desk = Desk(tmp_path / "home", front, "")
        held.callback(desk.close)
        cms.log_in()
        yield desk, cms


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One sitemapd for all vendors."""
    packages = Packages("vendors", PINS)
    home: Path = tmp_path_factory.mktemp("vendors") / "home"
    (home / "public").mkdir(parents=True)
    config = home / "sitemapd.toml"
    config.write_text(VENDORS)
    config.chmod(0o600)
    system = System(home)
    system.start()
    yield Service(packages, system)
    assert system.stop() == 0
