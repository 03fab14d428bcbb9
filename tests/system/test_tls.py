"""Redis over TLS that asks for certificates of its clients: state and broker, in real processes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.driver import wait_until
from tests.system.parts import BASE, PARTS, PASSWORD, Parts
from tests.system.tls import Authority, free_port, with_tls


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def secure(authority: Authority, tmp_path: Path) -> Iterator[Parts]:
    """The parts, none of them started, and a Redis that takes TLS on its second port."""
    parts = Parts(tmp_path / "home", with_tls()[0])
    port = free_port()
    parts.place = f"127.0.0.1:{port}"
    parts.plain_port = free_port()
    settings = {"tls-port": str(port), "port": str(parts.plain_port), "bind": "127.0.0.1"}
    settings |= authority.settings()
    try:
        parts.redis(*(word for name, value in settings.items() for word in (f"--{name}", value)))
        speak(parts, authority.options())
        yield parts
    finally:
        for name in reversed([*parts.running]):
            parts.stop(name)


def speak(parts: Parts, options: str) -> None:
    """Have what starts from now on speak TLS with these options."""
    url = f"rediss://sitemapd:{PASSWORD}@{parts.place}/0{options}"
    parts.environment["SITEMAPD_REDIS_URL"] = url


def test_an_event_is_accepted_and_published_with_a_certificate(secure: Parts) -> None:
    for name in PARTS:
        secure.part(name)

    wait_until(lambda: secure.post("a") == 202, "an event is accepted")
    wait_until(lambda: secure.lists("a"), "it is published")
    secure.stop("schedule")  # so that only a wake-up of the broker can come
    taken = woken(secure)
    assert secure.post("b") == 202
    wait_until(lambda: secure.lists("b"), "it is published, too")
    wait_until(lambda: woken(secure) > taken, "the broker wakes the worker")
    done = secure.command("doctor", "--offline", "--json")
    found = {each["check"]: each["status"] for each in json.loads(done.stdout)["checks"]}
    assert (found["redis"], found["redis rights"], found["workers"]) == ("ok", "ok", "ok")
    assert secure.command("backup", str(secure.home / "backup")).returncode == 0
    logs = "".join(secure.log(name) for name in PARTS)
    assert PASSWORD not in logs
    assert "CERT_NONE" not in logs


def woken(parts: Parts) -> int:
    """How often the worker took a message from the broker."""
    said = parts.redis_says(f"AUTH sitemapd {PASSWORD}".encode(), b"INFO commandstats").decode()
    found = re.search(r"cmdstat_brpop:calls=(\d+)", said)
    return int(found[1]) if found else 0


def test_a_client_that_the_server_does_not_take_is_told_the_remedy(
    secure: Parts, authority: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "other")

    def refusal(options: str) -> str:
        speak(secure, options)
        done = secure.command("status")
        assert done.returncode == 1
        assert PASSWORD not in done.stderr
        return done.stderr

    without = refusal(authority.options(certificate=False))
    assert "Redis does not answer" in without
    assert "the server may ask for a certificate: ssl_certfile and ssl_keyfile" in without
    assert "ssl_ca_certs in the address must name the authority" in refusal(
        authority.options(trusted=other.own)
    )
    assert "may not take the certificate in ssl_certfile" in refusal(
        other.options(trusted=authority.own)
    )
    assert "a file that ssl_ca_certs, ssl_certfile" in refusal(
        authority.options(trusted=tmp_path / "absent")
    )
    tls, secure.place = secure.place, f"127.0.0.1:{secure.plain_port}"
    assert "this port speaks no TLS" in refusal(authority.options())
    secure.place = tls
    speak(secure, authority.options(trusted=other.own))
    findings = json.loads(secure.command("doctor", "--offline", "--json").stdout)["checks"]
    (redis,) = (each for each in findings if each["check"] == "redis")
    assert redis["status"] == "fail"
    assert "ssl_ca_certs" in redis["detail"]


def test_a_broker_of_another_authority_is_told_nothing(
    secure: Parts, authority: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "other")
    state = secure.environment["SITEMAPD_REDIS_URL"]
    trusted = str(authority.own)
    secure.environment["SITEMAPD_BROKER_URL"] = state.replace(trusted, str(other.own))
    for name in ("web", "worker"):
        secure.part(name)

    wait_until(lambda: secure.post("a") == 202, "an event is accepted")
    wait_until(
        lambda: "CERTIFICATE_VERIFY_FAILED" in secure.log("worker"), "it trusts no other", 60
    )

    assert b"cmdstat_brpop" not in secure.redis_says(
        f"AUTH sitemapd {PASSWORD}".encode(), b"INFO commandstats"
    )


def served_as(parts: Parts, scheme: str, place: str) -> None:
    """Have commands ask at `place`: they must find the state there, and nothing to mend in it."""
    options = parts.environment["SITEMAPD_REDIS_URL"].partition("?")[2]
    url = f"{scheme}://sitemapd:{PASSWORD}@{place}?{options}"
    parts.environment["SITEMAPD_REDIS_URL"] = url
    parts.environment["SITEMAPD_BROKER_URL"] = "amqp://127.0.0.1:1"
    (parts.home / "pages.ndjson").write_text(f'{{"loc":"{BASE}/a"}}\n')
    done = parts.command("import", "--from", f"ndjson:{parts.home / 'pages.ndjson'}")
    assert done.returncode == 0, done.stderr
    assert "ok    redis settings" in parts.command("doctor", "--offline").stdout
    assert "CERTIFICATE_VERIFY_FAILED" not in done.stderr


def test_sentinels_and_the_master_that_they_name_take_certificates(
    secure: Parts, authority: Authority
) -> None:
    port = free_port()
    master = secure.place.partition(":")[2]
    settings = authority.settings() | {
        "port": "0", "tls-port": str(port), "bind": "127.0.0.1", "dir": str(secure.home),
        "sentinel monitor main": f"127.0.0.1 {master} 1",
        "sentinel auth-user main": "sitemapd", "sentinel auth-pass main": PASSWORD,
    }  # fmt: skip
    config = secure.home / "sentinel.conf"
    config.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    secure.process("sentinel", [with_tls()[0], config, "--sentinel"])
    wait_until(lambda: "+monitor master main" in secure.log("sentinel"), "the sentinel watches")

    served_as(secure, "rediss+sentinel", f"127.0.0.1:{port}/main/0")


def test_the_nodes_of_a_cluster_take_certificates(authority: Authority, tmp_path: Path) -> None:
    parts = Parts(tmp_path / "home", with_tls()[0])
    port = free_port()
    with (parts.home / "users").open("a") as users:
        users.write("user founder on nopass ~* &* +@all\n")
    settings = authority.settings() | {
        "tls-port": str(port), "bind": "127.0.0.1", "cluster-enabled": "yes",
        "cluster-port": str(free_port()),
    }  # fmt: skip
    try:
        parts.redis(*(word for name, value in settings.items() for word in (f"--{name}", value)))
        parts.place = f"127.0.0.1:{port}"
        speak(parts, authority.options())
        for command in (b"CLUSTER ADDSLOTSRANGE 0 16383", b"CLUSTER INFO"):
            parts.redis_says(b"AUTH founder any", command)
        info = b"AUTH founder any", b"CLUSTER INFO"
        wait_until(lambda: b"cluster_state:ok" in parts.redis_says(*info), "all slots are served")

        served_as(parts, "rediss+cluster", parts.place)
    finally:
        for name in reversed([*parts.running]):
            parts.stop(name)
