"""Content delivery networks: told which files a publish changed, once all targets have them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import redis
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.integration.engines import Engine, engine, reply
from tests.integration.notified import SECRET, Desk
from tests.integration.rig import BASE
from worker.publishing.followers.follower import Follower

ZONE = "0123456789abcdef0123456789abcdef"
TABLES: dict[str, Any] = {
    "cloudflare": lambda url: {"zone": ZONE, "token": SECRET, "endpoint": f"{url}/client/v4"},
    "fastly": lambda url: {"token": SECRET, "endpoint": url},
    "cloudfront": lambda url: {
        "distribution": "EDFDVBD6EXAMPLE", "access_key_id": "AKIDEXAMPLE",
        "secret_access_key": SECRET, "endpoint": url, "debounce_minutes": 0,
    },
    "purge": lambda url: {"url": f"{url}/purge?u={{url}}", "token": SECRET},
}  # fmt: skip
DONE = {
    "cloudflare": reply(200, {"success": True, "errors": [], "result": {"id": ZONE}}),
    "fastly": reply(200, {"status": "ok", "id": "1"}),
    "cloudfront": reply(201, b"<Invalidation/>"),
    "purge": reply(200, b"Purged"),
}
TWO = [f"{BASE}pages-1.xml", f"{BASE}sitemap.xml"]


@pytest.fixture
def server() -> Iterator[Engine]:
    with engine() as found:
        yield found


def desk(store: redis.Redis, tmp_path: Path, name: str, server: Engine, **more: Any) -> Desk:
    server.script = [DONE[name]]
    tmp_path.mkdir(exist_ok=True)
    return Desk(store, tmp_path / "public", {name: TABLES[name](server.url)}, **more)


def purged(name: str, server: Engine) -> list[str]:
    """The URLs that the network was told of, in the form of its own interface."""
    found: list[str] = []
    for asked in server.asked:
        if name == "cloudflare":
            assert (asked.method, asked.target) == ("POST", f"/client/v4/zones/{ZONE}/purge_cache")
            assert asked.headers["authorization"] == f"Bearer {SECRET}"
            found += asked.json()["files"]
        elif name == "fastly":
            assert asked.headers["fastly-key"] == SECRET
            assert asked.headers["fastly-soft-purge"] == "1"
            found.append("https://" + asked.target.removeprefix("/purge/"))
        elif name == "cloudfront":
            expected = "/2020-05-31/distribution/EDFDVBD6EXAMPLE/invalidation"
            assert (asked.method, asked.target) == ("POST", expected)
            batch = ET.fromstring(asked.body)
            paths = [each.text or "" for each in batch.iter() if each.tag.endswith("}Path")]
            (quantity,) = (each.text for each in batch.iter() if each.tag.endswith("Quantity"))
            assert int(quantity or 0) == len(paths)
            found += [BASE.rstrip("/") + path for path in paths]
        else:
            assert asked.method == "PURGE"
            assert asked.headers["authorization"] == f"Bearer {SECRET}"
            url = asked.target.partition("?u=")[2]
            found.append(url.replace("%3A", ":").replace("%2F", "/"))
    return sorted(found)


@pytest.mark.parametrize("name", TABLES)
def test_a_publish_purges_the_files_that_it_changed_and_no_page(
    store: redis.Redis, tmp_path: Path, server: Engine, name: str
) -> None:
    told = desk(store, tmp_path, name, server)
    told.rig.do({"type": "upsert", "loc": "a"})
    told.now += 10**12

    told.look()

    assert purged(name, server) == TWO
    assert told.waiting(name) == 0
    assert told.notices.records(1)[0].outcome == "done"


@pytest.mark.parametrize("name", TABLES)
def test_a_failing_network_is_asked_again_later_and_nothing_is_lost(
    store: redis.Redis, tmp_path: Path, server: Engine, name: str
) -> None:
    told = desk(store, tmp_path, name, server)
    server.script = [reply(503)]
    told.rig.do({"type": "upsert", "loc": "a"})
    told.now += 10**12

    told.look()
    assert told.waiting(name) == 2
    server.script, server.asked = [DONE[name]], []
    told.look()
    assert not server.asked  # it rests
    told.now += 3_600_000
    told.look()

    assert purged(name, server) == TWO


def test_a_refused_purge_of_cloudflare_and_throttling_of_cloudfront_are_no_success(
    store: redis.Redis, tmp_path: Path, server: Engine
) -> None:
    told = desk(store, tmp_path, "cloudflare", server)
    server.script = [reply(200, {"success": False, "errors": [{"message": "Unable to purge"}]})]
    told.enqueue(*TWO)
    told.look()
    assert told.notices.records(1)[0].outcome == "failed"
    assert told.waiting("cloudflare") == 2

    told = desk(store, tmp_path / "other", "cloudfront", server)
    server.script = [reply(400, b"<Error><Code>TooManyInvalidationsInProgress</Code></Error>")]
    told.enqueue(*TWO)
    told.look()
    assert told.notices.records(1)[0].outcome == "too many"
    assert told.waiting("cloudfront") == 2


def test_a_hundred_urls_are_one_request_to_cloudflare(
    store: redis.Redis, tmp_path: Path, server: Engine
) -> None:
    told = desk(store, tmp_path, "cloudflare", server)
    told.enqueue(*(f"{BASE}pages-{n}.xml" for n in range(150)))

    told.look()

    assert [len(json.loads(asked.body)["files"]) for asked in server.asked] == [100, 50]


def test_the_signature_is_that_of_botocore(
    store: redis.Redis, tmp_path: Path, server: Engine
) -> None:
    told = desk(store, tmp_path, "cloudfront", server)
    told.enqueue(*TWO)
    told.look()
    (asked,) = server.asked
    at = asked.headers["x-amz-date"]

    request = AWSRequest(
        "POST", server.url + asked.target, data=asked.body,
        headers={"Content-Type": asked.headers["content-type"]},
    )  # fmt: skip
    request.context["timestamp"] = at
    request.headers["X-Amz-Date"] = at
    signer = SigV4Auth(Credentials("AKIDEXAMPLE", SECRET), "cloudfront", "us-east-1")
    text = signer.string_to_sign(request, signer.canonical_request(request))

    given = re.search("Signature=([0-9a-f]{64})", asked.headers["authorization"])
    assert given is not None
    assert given[1] == signer.signature(text, request)
    assert SECRET not in str(asked)


def test_a_purge_waits_for_every_target_but_not_for_one_that_is_down(
    store: redis.Redis, tmp_path: Path, server: Engine
) -> None:
    more = {"url": str(tmp_path / "more"), "name": "more"}
    told = desk(store, tmp_path, "cloudflare", server, targets=[more])
    told.rig.do({"type": "upsert", "loc": "a"})
    site = told.rig.site
    told.now = told.rig.resyncs.begin_ms() + 1_000

    told.look()
    assert not server.asked

    Follower(store, "demo", site, site.every_target[1], "w2").tick()
    told.look()
    assert purged("cloudflare", server) == TWO

    server.asked.clear()
    told.rig.do({"type": "upsert", "loc": "a", "lastmod": "2020-01-01"})
    told.now = told.rig.resyncs.begin_ms() + 61_000
    told.look()
    assert purged("cloudflare", server) == TWO
    # Whoever asked the target that was down meanwhile has the old file: once more.
    server.asked.clear()
    Follower(store, "demo", site, site.every_target[1], "w2").tick()
    told.look()
    assert purged("cloudflare", server) == TWO
