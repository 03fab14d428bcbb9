"""Feeds that somebody sends, read: Atom 1.0, RSS 2.0, and whatever is neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.cms.pages import PageChange
from shared.errors import UnusableSourceError
from shared.sitemap import feed_parser
from shared.sitemap.feed_parser import ParsedItem
from tests.unit.webhook.sources.delivering import SITE, Delivery, config
from webhook.sources import websub
from webhook.sources.adapter import IgnoredDelivery, Outcome, ResyncAsked

ATOM = '<feed xmlns="http://www.w3.org/2005/Atom">{}</feed>'
RSS = '<rss version="2.0"><channel><title>t</title><link>https://x/</link>{}</channel></rss>'
GONE = (
    '<at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0" ref="tag:1"'
    ' when="2026-11-21T10:00:00Z"/>'
)


def items(form: str, content: str) -> list[ParsedItem]:
    return feed_parser.read(form.format(content).encode()).items


def outcomes(form: str, content: str, **settings: object) -> list[Outcome]:
    hook = Delivery("POST", "", {}, form.format(content).encode())
    return list(websub.translate(hook, config("websub", **settings)))


def test_an_atom_entry_is_read():
    (found,) = items(ATOM, """
<title>of the feed</title><id>of the feed</id><updated>2020-01-01T00:00:00Z</updated>
<entry><author><name>Jane</name><id>of the author</id></author>
<link rel="edit" href="https://x/edit"/><link href=" https://x/a?b&amp;c "/>
<link rel="alternate" href="https://x/second"/>
<id> tag:1 </id><title>A &lt;b&gt;</title><updated>2026-11-21T12:00:00.5+02:00</updated>
<published>2026-01-01T00:00:00Z</published><content type="xhtml"><title>inner</title></content>
</entry>""")  # fmt: skip

    assert found == ParsedItem(
        "https://x/a?b&c", "tag:1", "2026-11-21T10:00:00Z", "2026-01-01T00:00:00Z", "A <b>"
    )


def test_an_rss_item_is_read():
    (found,) = items(RSS, """<item><title>A</title><link>https://x/a</link>
<guid isPermaLink="false">7</guid><pubDate>Sat, 21 Nov 2026 11:00:00 +0100</pubDate>
<media:title xmlns:media="urn:m">other</media:title></item>""")  # fmt: skip

    assert found == ParsedItem("https://x/a", "7", "", "2026-11-21T11:00:00+01:00", "A")


@pytest.mark.parametrize(("said", "link"), [("", "https://x/a"), ('isPermaLink="false"', "")])
def test_a_guid_is_an_address_unless_it_says_that_it_is_none(said, link):
    (found,) = items(RSS, f"<item><guid {said}>https://x/a</guid></item>")

    assert (found.link, found.ident) == (link, "https://x/a")


def test_markup_is_no_title():
    (found,) = items(ATOM, '<entry><title type="html">&lt;b&gt;A&lt;/b&gt;</title></entry>')

    assert found.title == ""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_what_its_declaration_says_it_is_written_in_is_what_it_is_read_in(encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?>'
    text += RSS.format("<item><link>https://x/ä</link></item>")

    assert feed_parser.read(text.encode(encoding)).items[0].link == "https://x/ä"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no element"), (b"{}", "not well-formed"), (b"<html/>", "neither Atom 1.0"),
        (b"<feed/>", "neither Atom 1.0"), (ATOM.format("<entry>").encode(), "mismatched"),
        (b"<!DOCTYPE rss><rss/>", "document type declaration"),
        (b'<?xml version="1.0" encoding="rot13"?><rss/>', "no XML"),
        (b'<?xml version="1.0" encoding="big5"?><rss/>', "no XML"),
        (ATOM.format("<title>&nbsp;</title>").encode(), "undefined entity"),
        (ATOM.format("<a>" * 200 + "</a>" * 200).encode(), "more than 100 deep"),
    ],
)  # fmt: skip
def test_what_is_no_feed_is_said(content, said):
    with pytest.raises(UnusableSourceError, match=said):
        feed_parser.read(content)


def test_entities_that_grow_are_never_declared():
    bomb = '<!DOCTYPE rss [<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(12)
    )
    with pytest.raises(UnusableSourceError, match="document type declaration"):
        feed_parser.read(
            f"{bomb}]><rss><channel><item><link>&m;</link></item></channel></rss>".encode()
        )


def test_a_text_is_kept_up_to_a_bound():
    (found,) = items(RSS, f"<item><link>https://x/{'a' * 1_000_000}</link></item>")

    assert len(found.link) == 8_192


def test_the_links_of_a_head_are_read_though_the_rest_is_missing():
    text = ATOM.format('<link rel="hub" href="https://h/"/><link rel="SELF" href="https://f"/>')

    assert feed_parser.head(text.encode()[:-4]) == {"hub": ["https://h/"], "self": ["https://f"]}
    assert feed_parser.head(b"nothing") == {}


@given(st.binary() | st.text().map(lambda text: ATOM.format(f"<entry>{text}</entry>").encode()))
def test_any_bytes_are_a_feed_or_are_refused(content):
    feed_parser.head(content)
    try:
        found = feed_parser.read(content)
    except UnusableSourceError:
        return
    assert all(isinstance(text, str) for item in found.items for text in item[:5])


def test_more_entries_than_anybody_reads_are_refused_where_they_begin_to_be_too_many():
    assert len(items(RSS, "<item/>" * feed_parser.MOST)) == feed_parser.MOST
    with pytest.raises(UnusableSourceError, match="more than 5000 entries"):
        items(RSS, "<item/>" * feed_parser.MOST + "<item/>" * 145_000)


class TestMeaning:
    def test_a_tombstone_is_a_delete_by_the_id_at_its_time(self):
        (found,) = outcomes(ATOM, GONE)

        assert found == PageChange({"type": "delete", "id": "tag:1"}, moment=1_795_255_200_000)

    def test_an_item_without_a_time_of_change_has_no_version(self):
        (found,) = outcomes(RSS, f"""<item><link>{SITE}/a</link>
<pubDate>Sat, 21 Nov 2026 10:00:00 GMT</pubDate></item>""")  # fmt: skip

        assert isinstance(found, PageChange)
        assert found.item["lastmod"] == "2026-11-21T10:00:00+00:00"
        assert found.moment is None

    def test_an_id_that_several_pages_have_is_nobodys(self):
        entries = "".join(
            f'<entry><id>{ident}</id><link href="{SITE}/{n}"/></entry>'
            for n, ident in enumerate(["same", "same", "own"])
        )
        found = outcomes(ATOM, entries)

        assert [change.item.get("id") for change in found if isinstance(change, PageChange)] == [
            None, None, "own",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("entry", "said"),
        [
            ('<link href="https://elsewhere.example/a"/>', "is another site"),
            ('<link href="/a"/>', "loc: "), ("<id>1</id>", "an entry without a link"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_listed_is_named_and_deletes_nothing(self, entry, said):
        (found,) = outcomes(ATOM, f"<entry>{entry}</entry>")

        assert isinstance(found, IgnoredDelivery)
        assert said in found.reason

    def test_a_feed_that_cannot_be_read_says_that_something_changed(self):
        (found,) = outcomes("{}", "no feed")

        assert isinstance(found, ResyncAsked)
