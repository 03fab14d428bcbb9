"""Each CMS, running and connected to a running sitemapd."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from email.message import Message
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.system.cms.desk import Desk
from tests.system.cms.directus import RELEASES, TOKEN, Directus
from tests.system.cms.directus import WHERE as DIRECTUS_WHERE
from tests.system.cms.front import Front, Label
from tests.system.cms.ghost import FIVE, SIX, Ghost
from tests.system.cms.payload import WHERE as PAYLOAD_WHERE
from tests.system.cms.payload import Payload
from tests.system.cms.strapi import Strapi
from tests.system.cms.vendors import CONFIG as VENDORS
from tests.system.cms.vendors import PINS, Packages, Service
from tests.system.cms.wagtail import Wagtail
from tests.system.driver import System


def _permalinks(templates: dict[str, str]) -> str:
    pairs = (f'{kind} = "{template}"' for kind, template in templates.items())
    return f"permalinks = {{ {', '.join(pairs)} }}"


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
{_permalinks(DIRECTUS_WHERE)}
"""
PAYLOAD = f"""\
[sites.demo.sources.payload]
sections = {{ posts = "posts" }}
locales = ["en", "de"]
{_permalinks(PAYLOAD_WHERE)}
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


@contextmanager
def _desk(home: Path, label: Label, connection: str) -> Iterator[Desk]:
    """An editor's desk, its sitemapd configured for the `connection`, and no CMS yet."""
    with closing(Front(label)) as front, closing(Desk(home, front, connection)) as desk:
        yield desk


@pytest.fixture(params=[FIVE, SIX], ids=lambda release: release.version)
def ghost(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Desk, Ghost]]:
    """Ghost and the desk of its editor."""
    with _desk(tmp_path / "home", _named_in_address, GHOST) as desk:
        url = desk.front.url
        cms = Ghost(request.param, tmp_path / "ghost", url, url + HOOK + "ghost", SECRET)
        with desk.using(cms):
            cms.set_up()
            yield desk, cms


@pytest.fixture
def strapi(tmp_path: Path) -> Iterator[tuple[Desk, Strapi]]:
    """Strapi and the desk of its editor."""
    with _desk(tmp_path / "home", _named_in_header, STRAPI) as desk:
        cms = Strapi(tmp_path / "strapi", desk.front.url)
        with desk.using(cms):
            cms.set_up(desk.front.url + HOOK + "strapi", SECRET)
            desk.reads(f"strapi:{desk.front.url}", cms.key)
            yield desk, cms


@pytest.fixture(params=RELEASES)
def directus(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Desk, Directus]]:
    """Directus, connected as `sitemapd connect` says, and the desk of its editor."""
    with _desk(tmp_path / "home", _triggered, DIRECTUS) as desk:
        cms = Directus(request.param, tmp_path / "directus", desk.front.url)
        with desk.using(cms):
            cms.set_up(desk.system.run("connect", "directus", "--to", desk.front.url).stdout)
            desk.reads(f"directus:{desk.front.url}", TOKEN)
            yield desk, cms


@pytest.fixture
def payload(tmp_path: Path) -> Iterator[tuple[Desk, Payload]]:
    """Payload with the printed hooks and environment, and the desk of its editor."""
    with _desk(tmp_path / "home", _operated, PAYLOAD) as desk:
        cms = Payload(tmp_path / "payload", desk.front.url)
        client = desk.system.run("connect", "payload", "--client").stdout
        guide = desk.system.run("connect", "payload", "--to", desk.front.url).stdout
        with desk.using(cms):
            cms.start(client, guide)
            desk.reads(f"payload:{desk.front.url}")
            yield desk, cms


@pytest.fixture
def wagtail(tmp_path: Path) -> Iterator[tuple[Desk, Wagtail]]:
    """Wagtail and the desk of its editor."""
    with _desk(tmp_path / "home", _named_in_body, "") as desk:
        url = desk.front.url
        cms = Wagtail(tmp_path / "wagtail", url, url + HOOK + "wagtail", STANDARD)
        with desk.using(cms):
            cms.log_in()
            desk.reads(f"wagtail:{url}")
            yield desk, cms


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One sitemapd for all vendors."""
    packages = Packages("vendors", PINS)
    home: Path = tmp_path_factory.mktemp("vendors") / "home"
    system = System(home)
    system.configure(VENDORS)
    system.start()
    yield Service(packages, system)
    assert system.stop() == 0
