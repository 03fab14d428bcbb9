"""Who may send: each vendor's own signature, and everything that is none (RELIABILITY T1-T5)."""

from __future__ import annotations

import base64
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.webhook.sources.delivering import (
    KEY,
    NOW,
    PASSWORD,
    PATH,
    SECRET,
    SIGN,
    STANDARD,
    TIMED,
    TOKEN,
    keys,
    signed,
)
from webhook.auth import TOLERANCE_S, SigningKey
from webhook.problems import RefusedError, UnauthorizedError
from webhook.sources import contentful, drupal, ghost, github, sanity, signatures
from webhook.sources.adapter import Delivery, SenderSecrets
from webhook.sources.registry import REGISTRY

BODY = {"type": "delete", "id": 1}
OTHER = "another-secret-altogether"
ALL = sorted(REGISTRY)
DIGESTED = [name for name in ALL if name not in {"strapi", "directus", "datocms", "prismic"}]


PROVING = {
    "authorization", "sanity-webhook-signature", "webhook-signature", "x-contentful-signature",
    "x-ghost-signature", "x-hub-signature", "x-hub-signature-256", "x-shopify-hmac-sha256",
    "x-wc-webhook-signature", "x-webflow-signature",
}  # fmt: skip


DAMAGES = {
    "cut": lambda value: value[:-2],
    "longer": lambda value: value + "=x",
    "empty": lambda _: "",
    "upper case": str.upper,
    "no ASCII": lambda value: "\xff" + value,
    "spaced": lambda value: value.replace("=", " = "),
}


def refusal(hook: Delivery, known: SenderSecrets, name: str = "") -> tuple[str, str]:
    with pytest.raises(RefusedError) as caught:
        REGISTRY[name or hook.path.removeprefix(PATH)].verify(hook, known, NOW)
    return caught.value.code, caught.value.reason


def test_every_source_is_signed_in_these_tests():
    assert set(SIGN) == set(REGISTRY)


@pytest.mark.parametrize("name", ALL)
class TestEverySource:
    def test_its_own_signature_verifies(self, name):
        REGISTRY[name].verify(signed(name, BODY), keys(name), NOW)

    def test_any_of_several_secrets_verifies(self, name):
        usual = PASSWORD if name == "datocms" else SECRET
        known = keys(name) if name in STANDARD else keys(name, OTHER, usual)

        REGISTRY[name].verify(signed(name, BODY), known, NOW)

    def test_another_secret_does_not(self, name):
        known = keys(name, OTHER)
        if name in STANDARD:
            known = known._replace(site=known.site._replace(keys=(SigningKey.of(b"o" * 32),)))

        assert refusal(signed(name, BODY), known)[0] == "unauthorized"

    def test_nothing_at_all_does_not(self, name):
        bare = Delivery("POST", PATH + name, {"content-type": "application/json"}, b"{}")

        assert refusal(bare, keys(name))[0] == "unauthorized"

    def test_no_secret_of_ours_is_nobodys(self, name):
        known = keys(name)._replace(secrets=[])
        known = known._replace(site=known.site._replace(keys=(), tokens=()))

        assert refusal(signed(name, BODY), known)[0] == "unauthorized"

    @pytest.mark.parametrize("how", DAMAGES, ids=DAMAGES)
    def test_a_damaged_header_does_not(self, name, how):
        if name == "prismic":
            damaged, usual = DAMAGES[how](SECRET), SECRET
            hook = signed(name, {**BODY, "secret": damaged})
        else:
            hook = signed(name, BODY)
            (proving,) = PROVING & hook.headers.keys()
            damaged, usual = DAMAGES[how](hook.headers[proving]), hook.headers[proving]
            hook = hook._replace(headers={**hook.headers, proving: damaged})
        if meaning(damaged) == meaning(usual):
            REGISTRY[name].verify(hook, keys(name), NOW)
        else:
            assert refusal(hook, keys(name))[0] == "unauthorized"


def meaning(value: str) -> object:
    """What a header means: hex digits and the names of schemes have no case."""
    scheme, _, rest = value.partition("=")
    if scheme in {"sha1", "sha256", "SHA1", "SHA256"}:
        return scheme, rest.lower()
    return bytes.fromhex(value) if signatures.hexed(value) is not None else value


@pytest.mark.parametrize("name", DIGESTED)
def test_a_body_that_was_changed_does_not_verify(name):
    hook = signed(name, BODY)

    assert refusal(hook._replace(body=hook.body + b" "), keys(name))[0] == "unauthorized"


@pytest.mark.parametrize("name", TIMED)
@pytest.mark.parametrize("skew", [-TOLERANCE_S - 2, TOLERANCE_S + 2])
def test_a_signature_of_another_time_is_stale(name, skew):
    assert refusal(signed(name, BODY, at=NOW + skew), keys(name))[0] == "stale"


@pytest.mark.parametrize("name", TIMED)
@pytest.mark.parametrize("moment", ["", "1e3", "-1", "9" * 40, "\u0661", "1.5"])
def test_a_time_that_is_none_is_no_signature(name, moment):
    hook = signed(name, BODY)
    old = str(int(NOW * 1000)) if name not in STANDARD else str(int(NOW))
    headers = {header: value.replace(old, moment) for header, value in hook.headers.items()}

    assert refusal(hook._replace(headers=headers), keys(name))[0] == "unauthorized"


@pytest.mark.parametrize("name", STANDARD)
def test_senders_of_ours_may_use_a_token_or_a_secret_of_their_own(name):
    plain = signed(name, BODY)
    hook = plain._replace(headers={"authorization": f"Bearer {TOKEN}"})
    REGISTRY[name].verify(hook, keys(name), NOW)

    own = "whsec_" + base64.b64encode(b"o" * 32).decode()
    mac = hmac.digest(b"o" * 32, f"m.{int(NOW)}.".encode() + plain.body, "sha256")
    headers = {
        "webhook-id": "m",
        "webhook-timestamp": str(int(NOW)),
        "webhook-signature": "v1," + base64.b64encode(mac).decode(),
    }
    assert REGISTRY[name].verify(plain._replace(headers=headers), keys(name, own), NOW).delivery


class TestVectors:
    """What vendors publish to test against."""

    def test_github(self):
        """docs.github.com, Validating webhook deliveries."""
        digest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        hook = Delivery("POST", "/", {"x-hub-signature-256": f"sha256={digest}"}, b"Hello, World!")

        github.verify(hook, keys("github", "It's a Secret to Everybody"), NOW)

    @pytest.mark.parametrize("space", ["", " "])
    def test_sanity(self, space):
        """@sanity/webhook, test/signature.test.ts."""
        said = f"t=1633519811129,{space}v1=tLa470fx7qkLLEcMOcEUFuBbRSkGujyskxrNXcoh0N0"
        hook = Delivery("POST", "/", {"sanity-webhook-signature": said}, b'{"_id":"resume"}')

        assert (
            sanity.verify(hook, keys("sanity", "test"), 1_633_519_811).moment == 1_633_519_811_129
        )
        with pytest.raises(UnauthorizedError):
            sanity.verify(hook._replace(body=b'{"_id":"structure"}'), keys("sanity", "test"), NOW)

    def test_contentful(self):
        """What signRequest of @contentful/node-apps-toolkit gives, over text that is not ASCII."""
        body = '{"sys":{"id":"e1"},"fields":{"slug":{"de":"ä"}}}'.encode()
        headers = {
            "content-type": "application/vnd.contentful.management.v1+json",
            "x-contentful-topic": "ContentManagement.Entry.publish",
            "x-contentful-signature": (
                "15a1f9b43eccf16d7b024405f0b4a401cb83510bf00231628d050cf86c491637"
            ),
            "x-contentful-signed-headers": (
                "content-type,x-contentful-signed-headers,x-contentful-timestamp,x-contentful-topic"
            ),
            "x-contentful-timestamp": "1795256430000",
        }
        hook = Delivery("POST", "/v1/sites/demo/hooks/contentful", headers, body)

        contentful.verify(hook, keys("contentful", "a" * 64), NOW)

    def test_another_one_of_sanity(self):
        said = "t=1633518820676,v1=e7C9h2sfbFfc4V7TEz7PSOp4IoNzl0UdVsBV-1wgdeA"
        body = b'{"title":"GROQ-Hooks are neat"}'
        hook = Delivery("POST", "/", {"sanity-webhook-signature": said}, body)

        sanity.verify(hook, keys("sanity", "try-me"), 1_633_518_820)


def test_contentful_signs_the_headers_it_names_the_path_and_the_query():
    t = str(int(NOW * 1000))
    names = "content-type,x-contentful-signed-headers,x-contentful-timestamp,x-contentful-topic"
    said = (
        f"content-type:application/json;x-contentful-signed-headers:{names};"
        f"x-contentful-timestamp:{t};x-contentful-topic:ContentManagement.Entry.publish"
    )
    content = f"POST\n/v1/sites/demo/hooks/contentful?a=1\n{said}\n{{}}".encode()
    headers = {
        "content-type": "application/json",
        "x-contentful-topic": "ContentManagement.Entry.publish",
        "x-contentful-signed-headers": names,
        "x-contentful-timestamp": t,
        "x-contentful-signature": hmac.digest(SECRET.encode(), content, "sha256").hex(),
        "x-contentful-idempotency-key": "once",
    }
    hook = Delivery("POST", PATH + "contentful", headers, b"{}", "a=1")

    assert contentful.verify(hook, keys("contentful"), NOW).delivery == "once"
    for changed in (
        hook._replace(path="/elsewhere"),
        hook._replace(query="a=2"),
        hook._replace(headers=headers | {"x-contentful-topic": "ContentManagement.Entry.delete"}),
    ):
        assert refusal(changed, keys("contentful"), "contentful")[0] == "unauthorized"


def test_contentful_without_its_time_among_what_is_signed_is_not_believed():
    t, names = str(int(NOW * 1000)), "content-type"
    content = f"POST\n{PATH}contentful\ncontent-type:application/json\n{{}}".encode()
    headers = {
        "content-type": "application/json",
        "x-contentful-signed-headers": names,
        "x-contentful-timestamp": t,
        "x-contentful-signature": hmac.digest(SECRET.encode(), content, "sha256").hex(),
    }
    hook = Delivery("POST", PATH + "contentful", headers, b"{}")

    assert refusal(hook, keys("contentful")) == ("unauthorized", "timestamp-unsigned")


def test_ghost_without_a_signed_time_could_be_replayed_for_ever():
    digest = hmac.digest(SECRET.encode(), b"{}", "sha256").hex()
    hook = Delivery("POST", PATH + "ghost", {"x-ghost-signature": f"sha256={digest}"}, b"{}")

    assert refusal(hook, keys("ghost")) == ("unauthorized", "timestamp-malformed")
    assert ghost.verify(signed("ghost", {}), keys("ghost"), NOW).moment == int(NOW * 1000)


@pytest.mark.parametrize("how", ["sha1", "sha256"])
def test_drupal_names_its_digest(how):
    digest = hmac.digest(SECRET.encode(), b"{}", how).hex()
    hook = Delivery("POST", "/", {"x-hub-signature": f"{how}={digest}"}, b"{}")

    drupal.verify(hook, keys("drupal"), NOW)
    with pytest.raises(UnauthorizedError):
        drupal.verify(
            hook._replace(headers={"x-hub-signature": f"md5={digest}"}), keys("drupal"), NOW
        )


@pytest.mark.parametrize("name", ALL)
@given(
    values=st.lists(st.text(alphabet=st.characters(max_codepoint=255)), min_size=8, max_size=8),
    body=st.binary(max_size=64),
)
def test_any_headers_are_refused(name, values, body):
    """Latin-1, as WSGI gives them: never another error than ours (T1)."""
    template = signed(name, BODY).headers
    given_ = dict(zip(template, values, strict=False))
    given_.setdefault("authorization", values[0])

    code, _ = refusal(Delivery("POST", PATH + name, given_, body), keys(name))
    assert code == "unauthorized"


def test_the_key_of_these_tests_is_the_sites():
    assert keys("wordpress").site.keys == (SigningKey.of(KEY),)
