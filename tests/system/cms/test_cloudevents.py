"""CloudEvents of the official JavaScript SDK, sent over HTTP to a running sitemapd."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.system.cms.vendors import Packages
from tests.system.driver import System

pytestmark = [pytest.mark.cms_cloudevents, pytest.mark.timeout(1_800)]

PINS = {"cloudevents": "10.0.0"}
TOKEN = "only-for-these-tests-only-for-these-tests"
SITE = "https://www.example.com"
CONFIG = f"""\
[sites.demo]
base_url = "{SITE}"
web_root = "public"
secrets = ["whsec_b25seS1mb3ItdGhlc2UtdGVzdHMtb25seQ=="]
tokens = ["{TOKEN}"]
shrink_share = 1
"""
EMIT = """
import { CloudEvent, CONSTANTS, HTTP, Mode, emitterFor } from 'cloudevents'
const authorization = `Bearer ${given.token}`
const transport = async ({ headers, body }, options) => {
  const answer = await fetch(given.url, {
    method: 'POST', body, headers: { ...headers, ...options.headers } })
  return { status: answer.status, ...await answer.json() }
}
const events = given.events.map((event) => new CloudEvent(event))
if (given.mode === 'batch') {
  // The SDK reads batches and writes none: what it wrote of each event, in one array.
  const message = { headers: { 'content-type': CONSTANTS.MIME_CE_BATCH },
                    body: JSON.stringify(events) }
  const read = HTTP.toEvent(message)
  if (!Array.isArray(read) || read.length !== events.length) throw Error('no batch')
  say([await transport(message, { headers: { authorization } })])
} else {
  const emit = emitterFor(transport, { binding: HTTP, mode: Mode[given.mode.toUpperCase()] })
  const answers = []
  for (const event of events) answers.push(await emit(event, { headers: { authorization } }))
  say(answers)
}
"""
OWN = """
import { CloudEvent, Mode, emitterFor, httpTransport } from 'cloudevents'
const emit = emitterFor(httpTransport(given.url), { mode: Mode[given.mode.toUpperCase()] })
const { body } = await emit(new CloudEvent(given.events[0]),
                            { headers: { authorization: `Bearer ${given.token}` } })
say(JSON.parse(body))
"""

Event = dict[str, Any]


class Sender:
    """The SDK, and the running service that it sends to."""

    def __init__(self, packages: Packages, system: System) -> None:
        self.packages, self.system = packages, system

    def send(self, address: str, mode: str, *events: Event, script: str = EMIT) -> Any:
        """The answers to `events`, each with its status."""
        url = f"{self.system.address}/v1/sites/demo/{address}"
        given = {"url": url, "token": TOKEN, "mode": mode, "events": events}
        return self.packages.said(script, given)

    def listed(self) -> set[str]:
        """The pages of the published sitemap, once nothing waits."""
        self.system.quiet()
        return {*self.system.published()}


@pytest.fixture(scope="module")
def sender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sender]:
    """The SDK and one sitemapd for all tests, each of which has pages of its own."""
    packages = Packages("cloudevents", PINS)
    home: Path = tmp_path_factory.mktemp("cloudevents") / "home"
    system = System(home)
    system.configure(CONFIG)
    system.start()
    yield Sender(packages, system)
    assert system.stop() == 0


def event(kind: str, subject: str, **data: str) -> Event:
    """One event about the page `subject`, without data where none is given.

    Its time is said, for the SDK gives an event without one another each time it is made.
    """
    made = {"id": secrets.token_hex(8), "source": "/cms", "type": f"page.{kind}"}
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {**made, "subject": subject, "time": time, **({"data": data} if data else {})}


@pytest.mark.parametrize("address", ["events", "hooks/cloudevents"])
@pytest.mark.parametrize("mode", ["structured", "binary"])
class TestOneByOne:
    def test_a_page_is_published_and_deleted_by_its_subject_alone(self, sender, address, mode):
        status = 202 if address == "events" else 200
        page = f"{SITE}/{secrets.token_hex(4)}"
        published = event("published", page[-8:], loc=page)

        (answer,) = sender.send(address, mode, published)
        assert (answer["status"], answer["accepted"]) == (status, 1), answer
        assert page in sender.listed()

        (answer,) = sender.send(address, mode, event("deleted", page[-8:]))
        assert (answer["status"], answer["accepted"]) == (status, 1), answer
        assert page not in sender.listed()

        (answer,) = sender.send(address, mode, published)
        assert answer["duplicate"] is True, answer
        assert page not in sender.listed()

    def test_an_event_that_says_nothing_of_a_page_is_refused_or_ignored(
        self, sender, address, mode
    ):
        (answer,) = sender.send(address, mode, event("published", "nowhere"))

        assert answer["status"] == (422 if address == "events" else 200), answer
        assert "data" in str(answer)
        assert not answer.get("accepted")


@pytest.mark.parametrize("address", ["events", "hooks/cloudevents"])
def test_a_batch_publishes_and_deletes(sender: Sender, address: str) -> None:
    first, second = (f"{SITE}/{secrets.token_hex(4)}" for _ in range(2))
    (answer,) = sender.send(
        address, "batch",
        event("published", first[-8:], loc=first), event("published", second[-8:], loc=second),
        event("deleted", second[-8:]),
    )  # fmt: skip

    assert answer["accepted"] == 3, answer
    assert {first, second} & sender.listed() == {first}


def test_the_transport_of_the_sdk_announces_no_length_and_is_refused(sender: Sender) -> None:
    """As the guide says: it sends in chunks, which are refused (SECURITY.md, T6)."""
    page = f"{SITE}/{secrets.token_hex(4)}"
    answer = sender.send("events", "structured", event("published", "x", loc=page), script=OWN)

    assert (answer["status"], answer["code"]) == (411, "length-required")
