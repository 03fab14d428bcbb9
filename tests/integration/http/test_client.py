"""Requests leave for checked addresses only, and end soon (RELIABILITY T22)."""

from __future__ import annotations

import datetime as dt
import gzip
import socket
import ssl
import time
import tracemalloc
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from shared.errors import BarredError, OutboundError
from tests.integration.engines import Behaviour, drip, engine, hang, raw, reply
from worker.http import client as http
from worker.http.exchange import NOTIFY, AllowedHosts, Bounds, OutboundRequest

HERE = AllowedHosts(frozenset({"127.0.0.1"}), private=True)
NAME = "engine.example"


def get(url: str) -> OutboundRequest:
    return OutboundRequest("GET", url, url)


def test_an_answer_comes_back_whole() -> None:
    with engine(reply(202, b"later", retry_after="7")) as server:
        answer = http.ask(
            OutboundRequest(
                "POST", f"{server.url}/x?y=1", "", {"Content-Type": "text/plain"}, b"body"
            ),
            HERE,
        )

    assert (answer.status, answer.body, answer.headers["retry-after"]) == (202, b"later", "7")
    (asked,) = server.asked
    assert (asked.method, asked.target, asked.body) == ("POST", "/x?y=1", b"body")
    assert asked.headers["host"] == f"127.0.0.1:{server.port}"
    assert asked.headers["user-agent"] == "sitemapd-notify"


def test_a_redirect_is_an_answer_and_not_followed() -> None:
    with engine() as other, engine(reply(302, location=other.url)) as server:
        assert http.ask(get(server.url), HERE).status == 302
        assert other.asked == []


@pytest.mark.parametrize("behaviour", [hang, drip])
def test_what_takes_too_long_is_cut_off_in_all(behaviour: Behaviour) -> None:
    """An answer that drips never lets a single read time out."""
    with engine(behaviour) as server:
        began = time.monotonic()
        with pytest.raises(OutboundError, match="nothing complete within"):
            http.ask(get(server.url), HERE, bounds=NOTIFY._replace(seconds=0.3))

        assert time.monotonic() - began < 5
    assert NOTIFY.seconds == 5


def test_a_reader_that_takes_nothing_is_cut_off() -> None:
    """More than the buffers of both sides hold is written to one that does not read."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with listener, pytest.raises(OutboundError):
        http.ask(
            OutboundRequest("POST", url, url, {}, bytes(50_000_000)),
            HERE,
            bounds=NOTIFY._replace(seconds=0.3),
        )


def test_a_name_that_does_not_resolve_in_time_is_cut_off() -> None:
    over: list[bool] = []

    def slow(_host: str, _port: int) -> Sequence[str]:
        while not over:
            time.sleep(0.01)
        return []

    began = time.monotonic()
    with pytest.raises(OutboundError, match="nothing complete"):
        http.ask(get("https://127.0.0.1/"), HERE, resolve=slow, bounds=NOTIFY._replace(seconds=0.2))

    assert time.monotonic() - began < 5
    over.append(True)


@pytest.mark.parametrize(
    "behaviour",
    [
        raw(b""),
        raw(b"SSH-2.0-OpenSSH_9.2\r\n"),
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nshort"),
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nlies!"),
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        raw(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1_000_000),
    ],
    ids=["nothing", "not HTTP", "cut short", "two lengths", "broken chunks", "endless header"],
)  # fmt: skip
def test_an_answer_that_lies_is_none(behaviour: Behaviour) -> None:
    with engine(behaviour) as server, pytest.raises(OutboundError) as caught:
        http.ask(get(server.url), HERE, bounds=NOTIFY._replace(seconds=2))

    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(("size", "taken"), [(65_536, True), (65_537, False)])
def test_an_answer_is_64_kib_at_most(size: int, taken: bool) -> None:
    with engine(reply(200, bytes(size))) as server:
        if taken:
            assert len(http.ask(get(server.url), HERE).body) == size
        else:
            with pytest.raises(OutboundError, match="more than 65536"):
                http.ask(get(server.url), HERE)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("{url}", AllowedHosts(frozenset({"other.example"}), private=True)),
        ("{url}", AllowedHosts(HERE.hosts)),
        ("{url}", AllowedHosts(HERE.hosts, http=True)),
        ("http://localhost:{port}", HERE),
        ("ftp://127.0.0.1:{port}/", HERE),
    ],
    ids=["another host", "no http", "http but not private", "a name of it", "no web"],
)
def test_what_is_not_allowed_does_not_leave(url: str, allowed: AllowedHosts) -> None:
    with engine() as server, pytest.raises(BarredError):
        http.ask(get(url.format(url=server.url, port=server.port)), allowed)

    assert not server.connected.is_set()


@pytest.mark.parametrize("host", ["127.1", "0x7f.1", "2130706433", "localhost", "0.0.0.0", "[::1]"])
def test_a_disguised_loopback_is_seen_after_resolving(host: str) -> None:
    """(measured) `127.1` and its like resolve to 127.0.0.1."""
    allowed = AllowedHosts(frozenset({host.strip("[]")}))
    with engine() as server, pytest.raises(OutboundError) as caught:
        http.ask(get(f"https://{host}:{server.port}/"), allowed)

    assert not server.connected.is_set()
    assert isinstance(caught.value, BarredError) or "no answer" in str(caught.value)


def test_one_forbidden_address_bars_the_name() -> None:
    addresses = ["93.184.215.14", "169.254.169.254"]

    with pytest.raises(BarredError, match=r"169\.254\.169\.254"):
        http.ask(
            get(f"https://{NAME}/"), AllowedHosts(frozenset({NAME}), private=True),
            resolve=lambda *_: addresses,
        )  # fmt: skip


def test_the_address_that_was_checked_is_the_one_connected_to() -> None:
    """A name that says something else when it is asked again finds nobody who asks."""
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])
    with engine() as server:
        url = f"http://{NAME}:{server.port}/"
        allowed = AllowedHosts(frozenset({NAME}), private=True)
        answer = http.ask(get(url), allowed, resolve=lambda *_: next(answers))

    assert answer.status == 200
    assert server.asked[0].headers["host"] == f"{NAME}:{server.port}"
    assert next(answers) == ["10.0.0.1"]


def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    with engine() as server:
        url = f"http://{NAME}:{server.port}/"
        allowed = AllowedHosts(frozenset({NAME}), private=True)
        answer = http.ask(get(url), allowed, resolve=lambda *_: ["127.0.0.9", "127.0.0.1"])

    assert answer.status == 200


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Contexts of a server with a certificate for `name`, and of a client that trusts it."""
    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    day = dt.timedelta(days=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )  # fmt: skip
    (folder / "server.pem").write_bytes(private + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "server.pem")
    return server, ssl.create_default_context(cadata=pem.decode())


def test_over_tls_the_name_is_asked_for_at_the_checked_address(tmp_path: Path) -> None:
    server_side, client_side = certificate(tmp_path, NAME)
    heard: list[Any] = []
    server_side.sni_callback = lambda _socket, name, _context: heard.append(name)
    send = partial(
        http.ask, allowed=AllowedHosts(frozenset({NAME, "other.example"}), private=True),
        resolve=lambda *_: ["127.0.0.1"],
    )  # fmt: skip
    with engine(tls=server_side) as server:
        answer = send(get(f"https://{NAME}:{server.port}/"), tls=client_side)

        assert (answer.status, heard) == (200, [NAME])
        with pytest.raises(OutboundError, match="certificate"):
            send(get(f"https://other.example:{server.port}/"), tls=client_side)
        with pytest.raises(OutboundError, match="certificate"):
            send(get(f"https://{NAME}:{server.port}/"))


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with engine() as server:
        assert http.ask(get(server.url), HERE).status == 200


def test_what_cannot_be_sent_is_not_repeated() -> None:
    """RELIABILITY T30: a library quotes the header that it refuses."""
    headers = {"Authorization": "Bearer canary\nInjected: yes"}
    with engine() as server, pytest.raises(OutboundError) as caught:
        http.ask(OutboundRequest("GET", server.url, server.url, headers), HERE)

    assert "canary" not in str(caught.value)
    assert server.asked == []


def test_a_server_that_falls_silent_is_given_up_before_the_time_of_the_exchange() -> None:
    bounds = Bounds(60.0, 1_000, silence=0.2)
    with engine(hang) as server, pytest.raises(OutboundError, match=r"silent for 0\.2 s"):
        http.ask(get(server.url), HERE, bounds=bounds)


def test_redirects_are_counted_and_each_is_held_against_the_hosts() -> None:
    hops: list[str] = []
    with engine() as other, engine() as server:
        elsewhere = other.url.replace("127.0.0.1", "localhost")
        server.script = [reply(302, location="/2"), reply(302, location=elsewhere)]
        client = http.HttpClient(HERE, Bounds(5.0, 1_000, redirects=2), "test")
        with client, pytest.raises(BarredError, match="localhost"):
            client.open(get(server.url), hops.append).__enter__()

        assert hops == [f"{server.url}/2", elsewhere]
        server.script = [reply(302, location="/2"), reply(302, location="/3")]
        client = http.HttpClient(HERE, Bounds(5.0, 1_000, redirects=1), "test")
        with client, pytest.raises(OutboundError, match="more than 1 redirects"):
            client.open(get(server.url)).__enter__()
        assert other.asked == []


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http://[/", "https://", "http://a:x/"])
def test_what_is_no_web_address_is_asked_nowhere(url: str) -> None:
    with pytest.raises(BarredError):
        http.ask(get(url), HERE)


def test_a_body_is_unpacked_within_its_bounds() -> None:
    bomb = reply(200, gzip.compress(bytes(10**8)), content_encoding="gzip")
    client = http.HttpClient(HERE, Bounds(10.0, 2 * 10**8), "test")
    tracemalloc.start()
    try:
        with engine(bomb, bomb) as server, client:
            with client.open(get(server.url)) as answer:
                assert answer.body(1_000, cut=True) == bytes(1_001)
            with (
                client.open(get(server.url)) as answer,
                pytest.raises(OutboundError, match="more than 1000"),
            ):
                answer.body(1_000)
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


def test_a_broken_compression_is_no_answer() -> None:
    packed = reply(200, b"no gzip", content_encoding="gzip")
    with engine(packed) as server, pytest.raises(OutboundError, match="no answer from"):
        http.ask(get(server.url), HERE)


def test_any_address_is_sent_as_http_can_carry_it() -> None:
    with engine() as server:
        http.ask(get(f"{server.url}/\u00fc b/100%/%C3?q=\u00fc%"), HERE)

        assert server.asked[0].target == "/%C3%BC%20b/100%25/%C3?q=%C3%BC%25"


def test_without_authorities_of_the_system_those_of_certifi_are_trusted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))

    assert http.trusted.__wrapped__().get_ca_certs()
