"""Who may speak for a site: any headers give a verified sender or our error, nothing else."""

from __future__ import annotations

import base64
import hmac
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.auth import (
    MAX_SIGNATURES,
    STRANGER,
    TOLERANCE_S,
    Credentials,
    Sender,
    SigningKey,
    check_token,
    verify,
)
from webhook.problems import RefusedError, UnauthorizedError

NOW = 1_795_250_000.0
KEY = b"k" * 32
BODY = b'{"type": "upsert"}'
SITE = Credentials((SigningKey.of(KEY),), (b"a-token-of-the-site",))


def signed(ident: str = "msg_1", at: str = "1795250000", key: bytes = KEY) -> dict[str, str]:
    digest = hmac.digest(key, f"{ident}.{at}.".encode() + BODY, "sha256")
    signature = "v1," + base64.b64encode(digest).decode()
    return {"webhook-id": ident, "webhook-timestamp": at, "webhook-signature": signature}


def test_the_example_of_the_standard_verifies():
    """The vector that Standard Webhooks libraries are tested with."""
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    sender = verify(
        headers, b'{"test": 2432232314}', Credentials((SigningKey.of(key),), ()), 1_614_265_330
    )

    assert (
        Sender("signature", "msg_p5jXN8AQM9LWM0D4loKWxJek", sha256(key).hexdigest()[:8]) == sender
    )


def test_any_of_several_signatures_and_keys_verifies():
    headers = signed()
    headers["webhook-signature"] = f"v1,AAAA v1a,x  {headers['webhook-signature']}"

    assert (
        verify(
            headers, BODY, Credentials((SigningKey.of(b"other"), SigningKey.of(KEY)), ()), NOW
        ).delivery
        == "msg_1"
    )


def test_a_key_verifies_until_it_expires():
    rotated = SITE._replace(keys=(SigningKey(KEY, "old", NOW), SigningKey.of(b"new")))

    assert verify(signed(), BODY, rotated, NOW - 1).key == "old"
    with pytest.raises(UnauthorizedError):
        verify(signed(), BODY, rotated, NOW)


def test_signatures_after_the_sixteenth_are_not_looked_at():
    headers = signed()
    headers["webhook-signature"] = "v1,AAAA " * MAX_SIGNATURES + headers["webhook-signature"]
    with pytest.raises(UnauthorizedError):
        verify(headers, BODY, SITE, NOW)


@pytest.mark.parametrize("off", [-TOLERANCE_S, 0, TOLERANCE_S])
def test_a_time_at_the_edge_of_the_tolerance_is_right(off):
    assert verify(signed(at=str(int(NOW) + off)), BODY, SITE, NOW).by == "signature"


@pytest.mark.parametrize("off", [-TOLERANCE_S - 1, TOLERANCE_S + 1])
def test_a_right_signature_of_another_time_is_stale(off):
    with pytest.raises(RefusedError) as refused:
        verify(signed(at=str(int(NOW) + off)), BODY, SITE, NOW)

    assert refused.value.code == "stale"


def test_a_wrong_signature_of_another_time_is_only_unauthorized():
    with pytest.raises(UnauthorizedError):
        verify(signed(at="1", key=b"x"), BODY, SITE, NOW)


@pytest.mark.parametrize("credentials", [Credentials((), ()), STRANGER])
def test_nobody_verifies_where_nothing_is_known(credentials):
    for headers in (signed(), signed(key=b""), {"authorization": "Bearer x"}):
        with pytest.raises(UnauthorizedError):
            verify(headers, BODY, credentials, NOW)


def test_a_token_verifies_and_takes_the_delivery_id_along():
    headers = {"authorization": "bearer a-token-of-the-site"}

    assert Sender("token", None, "token") == verify(headers, BODY, SITE, NOW)
    assert Sender("token", "d", "token") == verify(headers | {"webhook-id": "d"}, BODY, SITE, NOW)
    with pytest.raises(RefusedError) as refused:
        verify(headers | {"webhook-id": "a.b"}, BODY, SITE, NOW)
    assert refused.value.code == "malformed"


@pytest.mark.parametrize(
    "given_",
    ["", "a-token-of-the-site", "Bearer a-token-of-the-sit", "Bearer a-token-of-the-site,"],
)
def test_what_is_not_exactly_a_token_is_refused(given_):
    with pytest.raises(UnauthorizedError):
        check_token({"authorization": given_}, SITE)


NAMES = st.sampled_from(["webhook-id", "webhook-timestamp", "webhook-signature", "authorization"])


@given(st.dictionaries(NAMES, st.text(max_size=40)), st.binary(max_size=20))
def test_any_headers_give_a_sender_or_our_error(headers, body):
    with pytest.raises(RefusedError):
        verify(headers, body, SITE, NOW)


@given(st.lists(st.sampled_from(["v1", ",", " ", "=", "A", "é", "\0", "v1,AAAA"])).map("".join))
def test_any_signature_header_is_read_without_an_exception_of_others(header):
    with pytest.raises(UnauthorizedError):
        verify(signed() | {"webhook-signature": header}, BODY, SITE, NOW)
