"""What is fuzzed: one function for each way in, which raises where a rule of ours is broken.

Each takes any bytes. Only our own errors may come out of a parser, and what it accepts must keep
the rules that are stated for it.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from lxml import etree

from shared.errors import DateError, InvalidError, RobotsError, UrlError
from shared.events.event import RELIST, UNLIST, Event, SchemaError, parse, parse_all
from shared.events.event_fields import TYPES, EventRules
from shared.sitemap import fragments, robots, urls, w3c_dates
from shared.sitemap.entry import CHANGEFREQS, Entry
from shared.sitemap.extensions import alternates, images, news, videos
from shared.sitemap.urls import Base
from tests.fuzz import engines, hooks, logs, pages, readers, sources
from webhook import auth, request_body
from webhook.auth import Credentials, SigningKey
from webhook.problems import MAX_FAULTS, RefusedError

BASE = Base.parse("https://www.example.com/d/")
RULES = EventRules(BASE, frozenset({"pages", "posts", "news"}), news=frozenset({"news"}))
ROOT = "<urlset " + " ".join(
    f'xmlns:{module.PREFIX}="{module.NAMESPACE}"' for module in (alternates, images, videos, news)
)
KEY, TOKEN = b"k" * 32, b"a-token-of-the-site"
NOW = 1_795_000_000.0
_MARKER = re.compile(rb"[ \t]*# (?:BEGIN|END) sitemapd(?![A-Za-z0-9_-])")
SITEMAPS = ["https://www.example.com/sitemap.xml", "https://www.example.com/sitemap-2.xml"]


class Target(NamedTuple):
    """One way in, and inputs to begin with."""

    run: Callable[[bytes], None]
    seeds: tuple[bytes, ...]


def events(data: bytes) -> None:
    """A body of events: taken ones are listed as exactly the strings they were stored as."""
    kind = "application/json" if data[:1] > b"\x7f" else "application/x-ndjson"
    try:
        taken, _ = parse_all(request_body.items(data[1:], kind), RULES, MAX_FAULTS)
    except RefusedError as error:
        assert error.code in {"json", "too-many"}
        return
    except InvalidError as error:
        assert 0 < len(error.faults) <= MAX_FAULTS
        return
    for event in taken:
        _check_event(event)
        assert Event.load(event.dump()) == event
        if event.loc is not None:
            assert urls.canonical(event.loc, BASE) == event.loc
            entry = Entry(
                event.loc, event.lastmod, event.changefreq, event.priority, event.images,
                event.videos, event.news, event.alternates,
            )  # fmt: skip
            (element,) = etree.fromstring(f"{ROOT}>{fragments.render(entry).decode()}</urlset>")
            said = {child.tag: child.text for child in element if "{" not in child.tag}
            names = ("loc", "lastmod", "changefreq", "priority")
            wanted = {name: v for name in names if (v := getattr(entry, name))}
            assert said == wanted
            assert fragments.parse(fragments.render(entry)) == entry


def _check_event(event: Event) -> None:
    assert event.type in {*TYPES, UNLIST, RELIST}
    texts = (event.loc, event.id, event.section, event.lastmod, event.priority, event.canonical)
    assert all(text is None or type(text) is str for text in texts)
    assert event.changefreq is None or event.changefreq in CHANGEFREQS
    assert event.version is None or type(event.version) is int
    assert type(event.noindex) is bool
    assert all(type(text) is str for text in (event.source, event.kind, event.locale))


def decoding(data: bytes) -> None:
    """Strict JSON: what is taken is what the standard library reads, and never too deep."""
    for read in (request_body.batch, request_body.lines):
        try:
            items = read(data)
        except RefusedError as error:
            assert error.code in {"json", "too-many"}
            continue
        assert 0 < len(items) <= request_body.MAX_ITEMS
        assert all(_depth(item) <= request_body.MAX_DEPTH for item in items)
        json.dumps(items, ensure_ascii=False, allow_nan=False).encode()
        if read is request_body.batch:
            value = json.loads(data)
            assert items == (value if isinstance(value, list) else [value])


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, (dict, list)) + max(map(_depth, inner), default=0)


def signature(data: bytes) -> None:
    """Headers of a sender: nobody gets in without the key, and who has it does."""
    parts = [part.decode("latin-1") for part in (data + b"\0\0\0\0").split(b"\0")[:5]]
    ident, stamp, signatures, authorization, content = parts
    headers = {
        "webhook-id": ident, "webhook-timestamp": stamp, "webhook-signature": signatures,
        "authorization": authorization,
    }  # fmt: skip
    known = Credentials([SigningKey.of(KEY)], [TOKEN])
    _refused(headers, content.encode(), known)
    unsigned = {n: v for n, v in headers.items() if n != "webhook-signature"}
    if authorization.strip(" ")[6:].strip(" ") != TOKEN.decode():
        _refused(unsigned, content.encode(), known)
    if auth.DELIVERY.fullmatch(ident):
        now = str(int(NOW))
        mac = hmac.digest(KEY, f"{ident}.{now}.".encode() + content.encode(), "sha256")
        genuine = "v1," + base64.b64encode(mac).decode()
        signed = headers | {"webhook-timestamp": now, "webhook-signature": genuine}
        if signatures.count(" ") < auth.MAX_SIGNATURES - 1:
            signed["webhook-signature"] = f"{signatures} {genuine}"
        assert auth.verify(signed, content.encode(), known, NOW).delivery == ident


def _refused(headers: Mapping[str, str], content: bytes, known: Credentials) -> None:
    try:
        sender = auth.verify(headers, content, known, NOW)
    except RefusedError as error:
        assert error.code == "unauthorized"
    else:
        raise AssertionError(f"taken for {sender}")


def framing(data: bytes) -> None:
    """What announces a body: it is read as long as announced, or not at all."""
    kind, coding, length, transfer, content = (data + b"\0\0\0\0").split(b"\0", 4)
    given = {"content-type": kind, "content-encoding": coding, "content-length": length}
    if transfer:
        given["transfer-encoding"] = transfer
    headers = {name: value.decode("latin-1") for name, value in given.items()}
    try:
        assert request_body.media_type(headers, request_body.NATIVE) in request_body.NATIVE
        assert coding.strip(b" \t").lower() in {b"", b"identity"}
    except RefusedError as error:
        assert error.code in {"media-type", "content-encoding"}
    try:
        found = request_body.read(BytesIO(content), headers, 1_000)
    except RefusedError as error:
        assert error.code in {"length-required", "too-large", "malformed"}
    else:
        assert not transfer
        assert found == content[: int(length)]
        assert len(found) == int(length) <= 1_000


def robots_txt(data: bytes) -> None:
    """robots.txt: no byte outside our two markers changes, and taking them out gives it back."""
    try:
        new = robots.edit(data, SITEMAPS)
    except RobotsError:
        return
    assert robots.edit(new, SITEMAPS) == new
    assert len(new) <= robots.MAX_BYTES
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True)
    ours = [n for n, line in enumerate(lines) if _MARKER.match(line)]
    if not ours:
        assert new.startswith(data)
        assert robots.edit(new, []) == data
    else:
        first, last = ours
        assert new.removeprefix(b"\xef\xbb\xbf").startswith(b"".join(lines[:first]))
        assert new.endswith(b"".join(lines[last + 1 :]))
        assert new.startswith(b"\xef\xbb\xbf") == data.startswith(b"\xef\xbb\xbf")


def dates(data: bytes) -> None:
    """W3C dates: one published form, of the same moment."""
    text = data.decode("utf-8", "replace")
    try:
        form = w3c_dates.canonical(text)
    except DateError:
        return
    assert w3c_dates.canonical(form) == form
    assert re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?", form)
    moment = datetime.fromisoformat(form)
    if len(form) == 10:
        assert form == text
    else:
        whole = re.sub(r"\.[0-9]+", "", text)
        assert datetime.fromisoformat(whole).timestamp() == moment.timestamp()


def addresses(data: bytes) -> None:
    """URLs: one canonical form, of this site only, whoever reads it."""
    text = data.decode("utf-8", "surrogatepass" if data.isascii() else "replace")
    for loc in (text, BASE.prefix + text):
        try:
            form = urls.canonical(loc, BASE)
        except UrlError:
            continue
        assert urls.canonical(form, BASE) == form
        assert re.fullmatch(r"[!-~]{1,2047}", form)
        assert form.startswith(BASE.prefix)
        parts = urlsplit(form)
        assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "www.example.com", "")
        assert not {".", ".."} & set(parts.path.split("/"))
    try:
        base = Base.parse(text)
    except UrlError:
        return
    assert Base.parse(base.prefix) == base


def stored(data: bytes) -> None:
    """What lies in the inbox: an event as we store it, or an error that a worker knows."""
    try:
        event = Event.load(data)
    except SchemaError:
        return
    _check_event(event)
    assert Event.load(event.dump()) == event


def _event(**members: Any) -> bytes:
    return json.dumps({"type": "upsert", "loc": BASE.url("a")} | members).encode()


FULL = {
    "id": "7", "section": "posts", "version": 1_795_000_000_000, "lastmod": "2026-11-21T10:00Z",
    "changefreq": "daily", "priority": "0.5", "noindex": False, "canonical": BASE.url("a"),
}  # fmt: skip
LINK = {"hreflang": "en", "href": BASE.url("a")}
VIDEO = {"thumbnail_loc": LINK["href"], "title": "T", "description": "D", "player_loc": "ftp://a/"}
EXTENDED = {
    "images": [{"loc": LINK["href"], "title": "old"}], "alternates": [LINK], "videos": [VIDEO],
    "lang": ["en"], "title": "T", "published": "2026-11-21", "section": "news",
    "news": {
        "publication": {"name": "N", "language": "en"}, "publication_date": "2026-11-21",
        "title": "T",
    },
}  # fmt: skip
LISTED = f"<url><loc>{BASE.url('a')}</loc><lastmod>2026-01-01</lastmod></url>\n"
OURS = b"# BEGIN sitemapd\nSitemap: https://www.example.com/sitemap.xml\n# END sitemapd\n"

TARGETS = {
    "events": Target(
        events,
        (
            b"\xff" + _event(**FULL),
            b"\xff[" + _event() + b"]",
            b"\n" + _event() + b"\n",
            b"\xff" + _event(**EXTENDED),
        ),
    ),
    "decoding": Target(decoding, (b'{"a": [1, -2.5e3, "\\ud83d\\ude00", null]}', b"[{},{}]\n{}")),
    "signature": Target(
        signature, (b"m_1\x001795000000\0v1,AAAA v1a,x\0Bearer x\0{}", b"m\x001\0\0bearer y\0")
    ),
    "framing": Target(
        framing, (b'application/json; charset="utf-8"\0identity\x002\0\0{}', b"a/b\0gzip\0x\0c\0")
    ),
    "robots": Target(
        robots_txt,
        (
            b"\xef\xbb\xbfUser-agent: *\r\nDisallow: /x\r\n",
            b"User-agent: *\n" + OURS + b"Allow: /",
            b"a\n# BEGIN sitemapd, including the line break before\n# END sitemapd",
        ),
    ),
    "dates": Target(dates, (b"2026-11-21", b"2026-11-21T10:00:00.25+02:00")),
    "addresses": Target(
        addresses, (BASE.url("a%41?q=%c3%a9#f").encode(), b"HTTP://www.\xc3\xa9x\xc3.com:443/../")
    ),
    "stored": Target(
        stored,
        (
            Event("upsert", BASE.url("a"), "7", version=1).dump(),
            parse(json.loads(_event(**EXTENDED)), RULES).dump(),
            Event(UNLIST, BASE.url("a"), stamp=3, why="answers 404").dump(),
            Event(
                RELIST, BASE.url("a"), stamp=3, entry=LISTED, group="00" * 8, lang=("de",)
            ).dump(),
        ),
    ),
    "hooks": Target(hooks.deliveries, hooks.SEEDS),
    "logs": Target(logs.access_log, logs.SEEDS),
    "pages": Target(pages.page, pages.SEEDS),
    "engines": Target(engines.answers, engines.SEEDS),
    "readers": Target(readers.answers, readers.SEEDS),
    "sitemap": Target(sources.reader("sitemap"), sources.SITEMAP),
    "csv": Target(sources.reader("csv"), sources.CSV),
    "ndjson": Target(sources.reader("ndjson"), sources.NDJSON),
}
