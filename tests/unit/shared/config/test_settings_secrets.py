"""Who may speak for a site; and no secret is ever shown or repeated (RELIABILITY T30)."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.configured import CANARY, SECRET, SITE, Load, faults, with_site

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        CANARY,
        SECRET.removeprefix("whsec_"),
        SECRET[:-1],
        SECRET + "!",
        "whsec_",
        "whsec_" + base64.b64encode(b"2" * 23).decode(),
        "whsec_" + base64.b64encode(b"6" * 65).decode(),
        "whsec_\u00e9" + SECRET[7:],
    ],
    ids=["plain", "no prefix", "cut", "more", "empty", "23 bytes", "65 bytes", "not ASCII"],
)
def test_a_malformed_secret_is_refused_with_the_command_that_makes_one(
    load: Load, text: str
) -> None:
    found = faults(load, with_site(f'secrets = ["{SECRET}", "{text}"]'))

    assert list(found) == ["sites.demo.secrets.1"]
    assert "sitemapd secret" in found["sites.demo.secrets.1"]


@pytest.mark.parametrize("size", [24, 64])
def test_a_secret_has_24_to_64_bytes(load: Load, size: int) -> None:
    text = "whsec_" + base64.b64encode(b"k" * size).decode()
    (secret,) = load(with_site(f'secrets = ["{text}"]')).sites["demo"].secrets

    assert secret.key(NEW_YEAR) == b"k" * size


@pytest.mark.parametrize("token", ["", "a" * 15, "\u00e9" * 16])
def test_a_token_that_can_be_guessed_or_not_be_sent_is_refused(load: Load, token: str) -> None:
    assert list(faults(load, SITE.replace(CANARY, token))) == ["sites.demo.tokens.0"]


def test_a_site_for_which_nobody_may_speak_is_refused(load: Load) -> None:
    (detail,) = faults(load, SITE.replace(f'"{CANARY}"', "")).values()

    assert "secrets and tokens" in detail
    assert load(SITE.replace("tokens", "secrets").replace(CANARY, SECRET)).sites["demo"].secrets


@pytest.mark.parametrize("until", ["2027-01-01T00:00:00Z", "2027-01-01T00:00:00"])
def test_a_secret_is_accepted_until_its_moment_and_not_at_it(load: Load, until: str) -> None:
    """A moment without a zone is one of UTC."""
    text = with_site(f'secrets = [{{secret = "{SECRET}", until = {until}}}]')
    (secret,) = load(text).sites["demo"].secrets

    assert secret.key(NEW_YEAR - timedelta(seconds=1)) == CANARY.encode() * 2
    assert secret.key(NEW_YEAR) is None


def test_secrets_with_and_without_an_end_stand_side_by_side(load: Load) -> None:
    text = with_site(f'secrets = ["{SECRET}", {{secret = "{SECRET}", until = 2027-01-01}}]')
    secrets = load(text).sites["demo"].secrets

    assert [secret.key(NEW_YEAR) is not None for secret in secrets] == [True, False]


def test_an_unknown_key_beside_a_secret_is_refused(load: Load) -> None:
    text = with_site(f'secrets = [{{secret = "{SECRET}", untill = 2027-01-01}}]')

    assert list(faults(load, text)) == ["sites.demo.secrets.0.untill"]


def test_no_secret_is_shown_when_settings_are(load: Load) -> None:
    text = with_site(f'secrets = ["{SECRET}", {{secret = "{SECRET}", until = 2027-01-01}}]')
    loaded = load(text)
    shown = f"{loaded!r} {loaded!s} {loaded.model_dump()} {loaded.model_dump_json()}"

    assert "demo" in shown
    assert CANARY not in shown
    assert SECRET not in shown
    assert base64.b64encode(CANARY.encode()).decode()[:12] not in shown
