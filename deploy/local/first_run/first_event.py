"""An example event, as shell lines that send it."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from string import Template

from shared.config.settings import Settings
from shared.domain.routing import DEFAULT_SECTION

_SIGNED = Template("""\
# one signed event (bash or dash, openssl, curl)
body=$body
id="example-$$(date +%s)-$$$$"
now="$$(date +%s)"
signature="$$(printf '%s.%s.%s' "$$id" "$$now" "$$body" |
  openssl dgst -sha256 -mac HMAC -macopt hexkey:$key -binary | openssl base64 -A)"
curl -sS $target \\
  -H 'content-type: application/json' -H "webhook-id: $$id" -H "webhook-timestamp: $$now" \\
  -H "webhook-signature: v1,$$signature" --data-binary "$$body"
""")

_BEARER = Template("""\
# one event
curl -sS $target -H 'content-type: application/json' -H "authorization: Bearer $token" \\
  --data-binary $body
""")


def signed_example(settings: Settings, site: str, address: str) -> str:
    """Return shell lines that send one event for `site` to the service at `address`.

    Signed by Standard Webhooks; with a Bearer token where the site has no secret in force. Only for
    a user who may read the configuration: the lines show a secret.
    """
    found = settings.sites[site]
    section = "posts" if "posts" in found.sections else DEFAULT_SECTION
    event = f'{{"type":"upsert","loc":"{found.base.url("hello-world")}","section":"{section}"}}'
    body = shlex.quote(event)
    target = shlex.quote(f"{address}/v1/sites/{site}/events")
    keys = [key for secret in found.secrets if (key := secret.key(datetime.now(UTC)))]
    if keys:
        return _SIGNED.substitute(body=body, key=keys[0].hex(), target=target)
    tokens = [token.get_secret_value() for token in found.tokens] or ["TOKEN"]
    return _BEARER.substitute(body=body, token=tokens[0], target=target)
