"""Signature 4 of AWS for one request.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html
"""

from __future__ import annotations

import hashlib
import hmac
import time
from urllib.parse import quote, urlsplit

from worker.http.exchange import OutboundRequest


def signed(
    request: OutboundRequest, key_id: str, secret: str, region: str, service: str, now: float
) -> OutboundRequest:
    """Return `request`, which has no query, with the signature of `now` (s since 1970)."""
    parts, at = urlsplit(request.url), time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    scope = f"{at[:8]}/{region}/{service}/aws4_request"
    headers = {**request.headers, "X-Amz-Date": at}
    named = {name.lower(): value.strip() for name, value in headers.items()}
    named["host"] = parts.netloc
    names = ";".join(sorted(named))
    lines = "".join(f"{name}:{named[name]}\n" for name in sorted(named))
    path = quote(parts.path or "/", safe="/-_.~")
    body = hashlib.sha256(request.body).hexdigest()
    canonical = f"{request.method}\n{path}\n\n{lines}\n{names}\n{body}"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in (at[:8], region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{digest}"
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    given = f"Credential={key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    return request._replace(headers={**headers, "Authorization": f"AWS4-HMAC-SHA256 {given}"})
