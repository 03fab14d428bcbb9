"""Feeds as a source of events: a real hub, the real webhook over HTTP, the code of the worker."""

from __future__ import annotations

import hmac
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st
from typer.testing import CliRunner, Result
from werkzeug.serving import make_server

from deploy.cli.program import app as cli
from shared.clock import now_ms
from shared.config.notify import hubs
from shared.config.notify.hubs import METHODS, UNSUBSCRIBE
from shared.config.settings import Settings
from shared.store.notify.subscriptions import SHORTEST_LEASE_S, Subscription
from shared.store.operations.audit_log import AuditLog
from tests.integration.conftest import RedisServer, Wait
from tests.integration.logs import silence
from tests.integration.notified import Desk
from tests.integration.notify.hub import Hub, Publisher, Reply, call, running
from tests.integration.rig import BASE, Rig
from webhook.app import create_app
from webhook.rejection_log import RejectionLog
from worker.notify.engine import AnswerVerdict
from worker.notify.websub_subscriber import REFUSED_MS, SiteHubs, linked
from worker.runtime import Runtime

SECRET = "a-secret-of-the-connection"
MINUTE = 60_000
ENTRY = (
    '<entry><id>tag:{n}</id><title>Page {n}</title><link href="{base}{n}"/>'
    "<updated>2026-11-20T10:00:0{n}Z</updated></entry>"
)


def atom(*numbers: int, head: str = "", base: str = BASE) -> bytes:
    entries = "".join(ENTRY.format(n=n, base=base) for n in numbers)
    return f'<feed xmlns="http://www.w3.org/2005/Atom">{head}{entries}</feed>'.encode()


class Setup:
    """A site with one feed, its CMS, its hub, the webhook; `shift` moves the worker's clock, ms."""

    def __init__(self, store: redis.Redis, redis_url: str, home: Path, hub: Hub) -> None:
        self.store, self.hub, self.shift = store, hub, 0
        self.feeds = home / "cms"
        self.feeds.mkdir()
        self.cms = Publisher(self.feeds)
        self.topic = f"{self.cms.url}/feed.atom"
        self.write(atom(1, head=self.link()))
        self.redis_url, self.root = redis_url, home / "public"
        self.root.mkdir()
        self.rig = self.site()
        settings = Settings(redis_url=redis_url, sites={"demo": self.rig.site})
        self._web = make_server("127.0.0.1", 0, create_app(settings), threaded=True)
        self.web = f"http://127.0.0.1:{self._web.server_port}"
        self._serving = threading.Thread(target=self._web.serve_forever, args=(0.01,), daemon=True)
        self._serving.start()
        self.rig = self.site(callback=self.web)
        self.worker = self.another()

    def site(self, hosts: tuple[str, ...] = ("127.0.0.1",), **more: Any) -> Rig:
        source = {"secret": SECRET, "topics": [self.topic], "allow_private": True, **more}
        return Rig(self.store, self.root, sources={"websub": source}, notify={"hosts": hosts})

    def another(self, rig: Rig | None = None) -> SiteHubs:
        site = (rig or self.rig).site
        return SiteHubs(self.store, "demo", site, clock=lambda: now_ms() + self.shift)

    def close(self) -> None:
        self._web.shutdown()
        self._serving.join()
        self._web.server_close()
        self.cms.close()

    def link(self, hub: str = "") -> str:
        return (
            f'<link rel="hub" href="{hub or self.hub.url}"/><link rel="self" href="{self.topic}"/>'
        )

    def write(self, feed: bytes) -> None:
        (self.feeds / "feed.atom").write_bytes(feed)

    def look(self) -> list[Any]:
        """As the worker does: what came of it."""
        with silence():
            return [self.worker.ask(topic) for topic in self.worker.due()]

    @property
    def now(self) -> Subscription:
        (found,) = self.worker.subscriptions.all()
        return found

    @property
    def form(self) -> dict[str, str]:
        return self.hub.asked[-1]

    def send(self, body: bytes, kind: str = "application/atom+xml") -> Reply:
        ((_, callback), secret), = self.hub.subscribers.items()  # fmt: skip
        return self.hub.send(callback, secret, body, kind)

    def stored(self) -> list[dict[str, Any]]:
        return [json.loads(fields[b"e"]) for _, fields in self.store.xrange("{demo}:inbox")]


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running(Hub()) as hub:
        yield hub


@pytest.fixture
def setup(
    store: redis.Redis, redis_server: RedisServer, tmp_path: Path, hub: Hub
) -> Iterator[Setup]:
    with running(Setup(store, redis_server.url, tmp_path, hub)) as setup:
        yield setup


class TestSubscribing:
    def test_the_hub_that_the_feed_names_is_asked_and_gets_its_challenge_back(self, setup, hub):
        (outcome,) = setup.look()

        assert (outcome.verdict, outcome.status) == (AnswerVerdict.PENDING, 202)
        (form,) = hub.asked
        assert form["hub.topic"] == setup.topic
        assert form["hub.lease_seconds"] == str(hubs.LEASE_S)
        assert len(form["hub.secret"]) == 64
        assert form["hub.callback"].startswith(f"{setup.web}/v1/sites/demo/hooks/websub?feed=")
        (reply,) = hub.verified
        assert (reply.status, reply.headers["content-type"]) == (200, "text/plain; charset=utf-8")
        assert set(hub.subscribers) == {(setup.topic, form["hub.callback"])}
        assert (setup.now.state, setup.now.hub) == ("active", hub.url)
        assert abs(setup.now.until - now_ms() - hub.lease_s * 1000) < MINUTE
        assert setup.look() == []

    def test_a_hub_may_ask_back_after_it_answered(self, setup, hub, until: Wait):
        hub.verifying = "after"
        setup.look()

        until(lambda: hub.subscribers, "the hub to ask back")
        assert setup.now.state == "active"

    def test_no_secret_is_stored(self, setup):
        setup.look()
        kept = [setup.store.dump(key) for key in setup.store.keys("*")]

        for secret in (SECRET, setup.form["hub.secret"], setup.form["hub.callback"]):
            assert not any(secret.encode() in value for value in kept)

    def test_links_in_headers_go_before_those_in_the_feed(self, setup, hub):
        setup.write(atom(1, head=setup.link("https://elsewhere.example/")))
        setup.cms.links = [f'<{hub.url}>; rel="hub", <{setup.topic}?self>; rel=self', "<x>; rel=y"]
        setup.look()

        assert (setup.now.state, setup.form["hub.topic"]) == ("active", f"{setup.topic}?self")

    def test_t22_a_hub_that_is_not_on_the_list_is_never_asked_whatever_the_feed_says(self, setup):
        with running(Hub()) as other:
            setup.write(atom(1, head=setup.link(other.url.replace("127.0.0.1", "localhost"))))
            (outcome,) = setup.look()

            assert outcome.verdict == AnswerVerdict.HELD
            assert "the hub of the feed is at localhost" in outcome.detail
            assert "notify.hosts" in outcome.detail
            assert other.asked == []
        assert (setup.now.state, setup.now.why) == ("failed", outcome.detail)

    def test_t22_a_feed_on_this_machine_is_not_asked_unless_that_is_allowed(self, setup, hub):
        source = setup.rig.site.sources["websub"].model_copy(update={"allow_private": False})
        setup.rig.site.sources["websub"] = source
        setup.worker = setup.another()
        (outcome,) = setup.look()

        assert (outcome.verdict, hub.asked) == (AnswerVerdict.HELD, [])

    @pytest.mark.parametrize("length", [0, 200_000])
    def test_of_a_long_feed_the_head_is_enough(self, setup, length):
        setup.write(atom(1, head=setup.link() + f"<subtitle>{'x' * length}</subtitle>"))
        setup.look()

        assert setup.now.state == "active"

    @pytest.mark.parametrize(
        ("feed", "said"),
        [
            (b"<feed", "names no hub"), (b"", "names no hub"), (b"\xff\xfe", "names no hub"),
            (atom(head='<link rel="hub" href="http://[/"/>'), "is not a URL"),
        ],
    )  # fmt: skip
    def test_a_feed_that_names_no_hub_is_said(self, setup, hub, feed, said):
        setup.write(feed)
        (outcome,) = setup.look()

        assert said in outcome.detail
        assert hub.asked == []

    def test_a_hub_that_is_configured_is_asked_and_the_feed_is_not(self, setup, hub):
        (setup.feeds / "feed.atom").unlink()
        setup.worker = setup.another(setup.site(callback=setup.web, hub=hub.url))
        setup.look()

        assert setup.now.state == "active"

    def test_two_workers_ask_once(self, setup, hub):
        due = setup.worker.due()
        assert due == setup.another().due() == [setup.topic]
        with silence():
            assert setup.worker.ask(setup.topic) is not None
            assert setup.another().ask(setup.topic) is None
        assert len(hub.asked) == 1


class TestRenewing:
    def test_a_lease_is_renewed_when_half_of_it_is_over(self, setup, hub):
        setup.look()
        before = setup.now
        setup.shift = before.due - now_ms() - MINUTE
        assert setup.look() == []
        setup.shift += 2 * MINUTE
        (outcome,) = setup.look()

        assert outcome.told
        assert len(hub.asked) == len(hub.verified) == 2
        assert setup.now.state == "active"
        assert setup.now.until >= before.until

    def test_what_was_subscribed_stays_while_a_renewal_fails(self, setup, hub):
        setup.look()
        setup.shift = hub.lease_s * 600
        hub.status = 503
        (outcome,) = setup.look()

        assert (outcome.verdict, setup.now.state) == (AnswerVerdict.FAILED, "failed")
        assert setup.now.until > now_ms() + setup.shift
        assert json.loads(setup.send(atom(1)).body)["accepted"] == 1

    def test_a_hub_that_fails_is_asked_again_later_and_later(self, setup, hub):
        hub.status, waits = 503, []
        for _ in range(4):
            setup.look()
            waits.append(round((setup.now.due - setup.now.asked) / MINUTE))
            setup.shift = setup.now.due - now_ms() + 1
        assert waits == [1, 2, 4, 8]

        hub.status = 202
        setup.look()
        assert (setup.now.state, setup.now.tries) == ("active", 0)

    def test_a_hub_that_never_asks_back_is_asked_again(self, setup, hub):
        hub.verifying = "never"
        setup.look()
        assert setup.now.state == "asked"
        setup.shift = 2 * MINUTE
        setup.look()

        assert len(hub.asked) == 2

    def test_a_hub_that_refuses_is_asked_again_the_next_day(self, setup, hub):
        hub.status = 403
        (outcome,) = setup.look()

        assert outcome.verdict == AnswerVerdict.FORBIDDEN
        assert abs(setup.now.due - now_ms() - REFUSED_MS) < MINUTE

    def test_a_hub_with_tiny_leases_does_not_have_us_ask_all_the_time(self, setup, hub):
        hub.lease_s = 0
        setup.look()

        assert setup.now.due - now_ms() > SHORTEST_LEASE_S * 1000 / 2 - MINUTE / 2


class TestVerifying:
    @pytest.mark.parametrize(
        "change",
        [
            {"hub_topic": "https://elsewhere.example/"}, {"hub_mode": "unsubscribe"},
            {"hub_mode": "publish"}, {"hub_challenge": ""}, {"hub_challenge": "x" * 5000},
            {"hub_lease_seconds": "soon"}, {"hub_lease_seconds": "-1"}, {"feed": "0" * 32},
        ],
        ids=str,
    )  # fmt: skip
    def test_what_was_not_asked_for_is_not_found_and_changes_nothing(self, setup, hub, change):
        hub.verifying = "never"
        setup.look()
        before = setup.now
        reply = hub.verify(setup.form, **change)

        assert reply.status == 404
        assert b"challenge" not in reply.body
        assert setup.now == before
        assert hub.verify(setup.form).status == 200

    def test_a_challenge_is_answered_once_for_each_time_we_asked(self, setup, hub):
        setup.look()

        assert hub.verify(setup.form).status == 404

    def test_an_address_that_nobody_was_given_is_not_found(self, setup):
        setup.look()
        query = "hub.mode=subscribe&hub.challenge=c&hub.lease_seconds=9&hub.topic=" + setup.topic
        answers = {
            call("GET", f"{setup.web}/v1/sites/{site}/hooks/{cms}?{query}").status
            for site, cms in [("demo", "websub"), ("other", "websub"), ("demo", "websub/")]
        }

        assert answers == {404}
        assert call("GET", f"{setup.web}/v1/sites/demo/hooks/ghost?{query}").status == 405

    def test_a_head_changes_nothing(self, setup, hub):
        setup.look()
        denied = {"hub.mode": "denied", "hub.topic": setup.topic}

        assert hub.back(setup.form, denied, "HEAD").status == 405
        assert setup.now.state == "active"

    def test_a_hub_that_denies_is_not_asked_again_until_somebody_wants_it(self, setup, hub):
        setup.look()
        denied = {"hub.mode": "denied", "hub.topic": setup.topic, "hub.reason": "no\nmore"}

        assert hub.back(setup.form, denied).status == 200
        assert (setup.now.state, setup.now.why) == ("denied", "no more")
        setup.shift = 400 * 24 * 3600_000
        assert setup.look() == []
        setup.worker.want(setup.topic, hubs.SUBSCRIBE)
        setup.look()
        assert setup.now.state == "active"


class TestTaking:
    @pytest.mark.parametrize("how", METHODS)
    def test_entries_become_events(self, setup, hub, how):
        hub.how = how
        setup.look()
        reply = setup.send(atom(1, 2))

        assert (reply.status, json.loads(reply.body)["accepted"]) == (200, 2)
        assert setup.stored()[0] == {
            "v": 2, "type": "upsert", "loc": BASE + "1", "id": "tag:1", "source": "websub",
            "kind": setup.topic, "lastmod": "2026-11-20T10:00:01Z", "title": "Page 1",
            "version": 1_795_168_801_000,
        }  # fmt: skip

    def test_what_is_not_rightly_signed_is_acknowledged_and_ignored(self, setup, hub, unchanged):
        setup.look()
        callback, body = setup.form["hub.callback"], atom(1)
        kind = {"Content-Type": "application/atom+xml"}
        with unchanged():
            replies = [
                hub.send(callback, "not the secret", body),
                hub.send(callback.rpartition("=")[0], setup.form["hub.secret"], body),
                hub.send(callback.replace("/demo/", "/other/"), setup.form["hub.secret"], body),
                call("POST", callback, body, kind),
                call("POST", callback, body, kind | {"X-Hub-Signature": "md5=00"}),
                call("POST", callback, body, kind | {"X-Hub-Signature": "sha256=\xff"}),
            ]

        assert {(reply.status, reply.body) for reply in replies} == {
            (200, b'{"accepted":0,"ignored":"not signed by a hub that was asked"}')
        }

    def test_what_is_ignored_so_is_noted_for_the_administrator(self, setup, until: Wait):
        settings = Settings(redis_url=setup.redis_url, sites={"demo": setup.rig.site})
        web = create_app(settings, refusals=RejectionLog(settings, every_s=0.01)).test_client()
        reply = web.post(
            "/v1/sites/demo/hooks/websub", data=atom(1), content_type="text/xml",
            headers={"X-Hub-Signature": "sha256=00"},
        )  # fmt: skip

        assert reply.status_code == 200
        until(lambda: setup.store.xlen("{demo}:refused"), "the note")
        ((_, note),) = setup.store.xrange("{demo}:refused")
        assert "signature-wrong" in str(note)

    def test_a_body_that_was_changed_on_the_way_is_ignored(self, setup):
        setup.look()
        digest = hmac.digest(setup.form["hub.secret"].encode(), atom(1), "sha256").hex()
        headers = {"Content-Type": "application/atom+xml", "X-Hub-Signature": f"sha256={digest}"}
        replies = [call("POST", setup.form["hub.callback"], atom(n), headers) for n in (1, 2)]

        assert [reply.status for reply in replies] == [200, 200]
        assert [event["loc"] for event in setup.stored()] == [BASE + "1"]

    def test_entries_of_other_hosts_keep_no_other_out_and_are_named(self, setup):
        setup.look()
        foreign = ENTRY.format(n=3, base="https://elsewhere.example/")
        said = json.loads(setup.send(atom(1, head=foreign)).body)

        assert said["accepted"] == 1
        assert "https://elsewhere.example is another site" in said["ignored"]
        assert [event["loc"] for event in setup.stored()] == [BASE + "1"]

    def test_a_feed_that_cannot_be_read_asks_for_a_reconcile(self, setup):
        setup.look()
        said = json.loads(setup.send(b"<!DOCTYPE x><feed/>").body)

        assert "document type declaration" in said["resync"]
        assert [event["type"] for event in setup.stored()] == ["resync"]

    def test_a_page_whose_address_changed_moves_by_the_id_of_its_entry(self, setup):
        setup.look()
        setup.send(atom(1))
        setup.send(
            atom(1).replace(BASE.encode() + b"1", BASE.encode() + b"new").replace(b":01Z", b":09Z")
        )
        setup.rig.settle()

        assert set(setup.rig.listed()) == {BASE + "new"}

    def test_another_form_of_body_is_refused(self, setup):
        setup.look()

        assert setup.send(b"{}", "application/json").status == 415

    @given(st.data())
    @hypothesis(
        max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture],
        derandomize=True,
    )  # fmt: skip
    def test_whatever_a_hub_sends_is_never_a_fault_of_ours(self, setup, data):
        if not setup.hub.subscribers:
            setup.look()
        whole = atom(1, 2, head=setup.link())
        begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
        body = whole[:begin] + data.draw(st.binary(max_size=20)) + whole[end:]
        kind = data.draw(st.sampled_from(["application/rss+xml", "text/xml", "x"]))

        assert setup.send(body, kind).status in {200, 415}


def test_a_secret_is_rotated_without_a_gap(setup, hub):
    """The hub goes on with the old one until it is asked again (RELIABILITY T4)."""
    setup.look()
    callback, secret = setup.form["hub.callback"], setup.form["hub.secret"]
    rotated = setup.site(callback=setup.web, secret=["another-secret-of-it", SECRET])
    sites: Any = {"demo": rotated.site}
    setup._web.app = create_app(Settings(redis_url=setup.redis_url, sites=sites))
    setup.worker = setup.another(rotated)
    assert json.loads(hub.send(callback, secret, atom(1)).body)["accepted"] == 1

    setup.worker.want(setup.topic, hubs.SUBSCRIBE)
    setup.look()
    assert setup.now.state == "active"
    assert {setup.form["hub.callback"], setup.form["hub.secret"]}.isdisjoint({callback, secret})
    new = hub.send(setup.form["hub.callback"], setup.form["hub.secret"], atom(2))
    assert json.loads(new.body)["accepted"] == 1


class TestEnding:
    def test_after_unsubscribing_what_still_comes_is_ignored(self, setup, hub):
        setup.look()
        (whose, secret), = hub.subscribers.items()  # fmt: skip
        setup.worker.want(setup.topic, UNSUBSCRIBE)
        setup.look()

        assert (setup.now.state, hub.subscribers) == ("ended", {})
        assert "hub.secret" not in setup.form
        assert json.loads(hub.send(whose[1], secret, atom(1)).body)["accepted"] == 0
        assert setup.stored() == []
        setup.shift = 400 * 24 * 3600_000
        assert setup.look() == []

    def test_a_feed_that_is_not_configured_any_more_is_unsubscribed_from_and_forgotten(self, setup):
        setup.look()
        setup.worker = setup.another(setup.site(callback=setup.web, topics=[setup.topic + "?2"]))
        setup.look()
        assert [form["hub.mode"] for form in setup.hub.asked][1:] == ["unsubscribe", "subscribe"]
        assert len(setup.hub.subscribers) == 1
        setup.look()

        assert [one.topic for one in setup.worker.subscriptions.all()] == [setup.topic + "?2"]


def test_a_worker_subscribes_by_itself(setup, redis_server, until: Wait):
    settings = Settings(redis_url=redis_server.url, sites={"demo": setup.rig.site})
    plant = Runtime(settings, "w1")
    with silence():
        plant.start()
        try:
            until(lambda: setup.hub.subscribers, "the worker to subscribe")
            assert setup.send(atom(1)).status == 200
            until(lambda: setup.rig.listed() == {BASE + "1": "2026-11-20T10:00:01Z"}, "the page")
        finally:
            plant.stop()


def test_a_feed_of_ours_goes_through_a_hub_into_the_sitemap_of_another_site(
    setup, store, redis_server, tmp_path, hub
):
    """The publisher's side and the subscriber's, with nothing between them but HTTP."""
    (tmp_path / "ours").mkdir()
    with running(Publisher(tmp_path / "ours")) as publisher:
        desk = Desk(
            store, tmp_path / "ours", {"websub": {}}, name="ours", base_url=publisher.url,
            feed=True, hub=hub.url,
        )  # fmt: skip
        pages = [f"{publisher.url}/{name}" for name in ("a", "b&c", "ä")]
        desk.rig.do(*({"type": "upsert", "loc": page} for page in pages))
        topics = [f"{publisher.url}/{name}" for name in ("atom.xml", "rss.xml")]
        source = {"secret": SECRET, "topics": topics, "allow_private": True, "callback": setup.web}
        other = Rig(
            store, setup.root, base_url=publisher.url, sources={"websub": source},
            notify={"hosts": ["127.0.0.1"]},
        )  # fmt: skip
        web = create_app(Settings(redis_url=redis_server.url, sites={"demo": other.site}))
        setup._web.app = web
        worker = setup.worker = setup.another(other)
        setup.look()
        assert {one.state for one in worker.subscriptions.all()} == {"active"}

        desk.now = now_ms() + MINUTE
        with silence():
            desk.look()
        assert {reply.status for reply in hub.sent} == {200}
        assert len(hub.sent) == 2
        other.settle()

        assert set(other.listed()) == set(desk.rig.listed())
        assert len(other.listed()) == 3


class TestCommands:
    @pytest.fixture
    def run(self, setup: Setup, tmp_path: Path) -> Any:
        (tmp_path / "sitemapd.toml").write_text(f"""
redis_url = "{setup.redis_url}"
[sites.demo]
base_url = "{BASE}"
web_root = "public"
tokens = ["0123456789abcdef"]
notify = {{ hosts = ["127.0.0.1"] }}
[sites.demo.sources.websub]
secret = "{SECRET}"
topics = ["{setup.topic}"]
callback = "{setup.web}"
allow_private = true
""")

        def run(*arguments: str) -> Result:
            options = ["--home", str(tmp_path), "--json"]
            with silence():
                return CliRunner().invoke(cli, ["websub", *arguments, *options])

        return run

    def test_they_subscribe_show_and_unsubscribe(self, setup, run):
        assert json.loads(run("list").stdout)[0]["state"] == "new"
        done = run("subscribe")
        assert done.exit_code == 0
        (row,) = json.loads(done.stdout)
        assert (row["feed"], row["mode"]) == (setup.topic, "subscribe")
        (row,) = json.loads(run("list").stdout)
        assert (row["state"], row["hub"], row["why"]) == ("active", setup.hub.url, None)
        assert run("unsubscribe", setup.topic).exit_code == 0
        assert json.loads(run("list").stdout)[0]["state"] == "ended"
        assert setup.hub.subscribers == {}
        actions = [entry.action for entry in AuditLog(setup.store).read()]
        assert actions == ["websub unsubscribe", "websub subscribe"]
        assert "a-secret" not in done.stdout

    def test_a_hub_that_does_not_take_it_is_exit_code_1(self, setup, run):
        setup.hub.status = 400

        assert run("subscribe").exit_code == 1
        assert "the engine rejects the format" in json.loads(run("list").stdout)[0]["why"]

    def test_a_feed_that_is_not_configured_is_named(self, run):
        error = run("subscribe", "https://elsewhere.example/").exception

        assert "elsewhere.example" in str(error)


def test_link_headers_are_read():
    said = '<https://h/?a=1,2>; rel="hub self"; title="a, b", <b>;rel=HUB, <c>; x=1, d, <e>; rel'

    assert linked(said) == {"hub": ["https://h/?a=1,2", "b"], "self": ["https://h/?a=1,2"]}


def test_a_query_of_bytes_that_are_no_text_is_no_fault() -> None:
    web = create_app(Settings(redis_url="redis://127.0.0.1:1")).test_client()
    query = {"QUERY_STRING": "hub.mode=\x80&hub.topic="}

    reply = web.get("/v1/sites/demo/hooks/websub", environ_overrides=query)

    assert (reply.status_code, reply.json["code"]) == (404, "not-found")
