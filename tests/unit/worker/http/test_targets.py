"""Addresses as they are sent, and the servers that credentials may go to (RELIABILITY T22)."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from worker.http.exchange import configured
from worker.http.targets import BasicCredentials, SecretField, credential, host_field, target

GIVEN = BasicCredentials("https://www.a.example/wp/", "u", "p")
HEADER = ("Authorization", "Basic dTpw")
SECRET = SecretField("https://www.a.example/api/", "X-Key", "k")


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://www.a.example/other", True),
        ("https://a.example:443/", True),
        ("http://www.a.example/", False),
        ("https://www.a.example:8443/", False),
        ("https://b.a.example/", False),
        ("https://a.example.evil.example/", False),
    ],
    ids=["its server", "without www", "no TLS", "another port", "below it", "another host"],
)
def test_credentials_go_to_the_server_they_were_given_for(url: str, sent: bool) -> None:
    assert credential(urlsplit(url), GIVEN) == (HEADER if sent else None)
    assert credential(urlsplit(url), SECRET) == (("X-Key", "k") if sent else None)


def test_credentials_given_for_http_go_along_to_https() -> None:
    given = BasicCredentials("http://a.example/", "u", "p")

    assert credential(urlsplit("https://a.example/"), given) == HEADER
    assert credential(urlsplit("http://a.example/"), given) == HEADER


def test_credentials_in_an_address_are_sent_there() -> None:
    assert credential(urlsplit("http://u:%70@b.example/"), None) == HEADER
    assert credential(urlsplit("http://u:p@b.example/"), GIVEN) == HEADER


@pytest.mark.parametrize(
    ("url", "host", "line"),
    [
        ("http://A.example?q", "a.example", b"/?q"),
        ("http://u:p@a.example:80/x#y", "a.example:80", b"/x"),
        ("http://m\u00fcnchen.example/", "xn--mnchen-3ya.example", b"/"),
        ("http://[::1]:8080/", "[::1]:8080", b"/"),
        ("http://a.example/a b|c%zz%41", "a.example", b"/a%20b|c%25zz%41"),
    ],
)
def test_an_address_is_sent_in_ascii(url: str, host: str, line: bytes) -> None:
    found = target(urlsplit(url))

    assert (host_field(found), found.target) == (host, line)


def test_a_configured_address_allows_its_own_host_only() -> None:
    assert configured("https://www.a.example/s.xml").hosts == {"a.example", "www.a.example"}
    assert not configured("file:///etc/passwd").hosts
