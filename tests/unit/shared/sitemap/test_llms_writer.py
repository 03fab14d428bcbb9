"""llms.txt, read by a parser of Markdown and by the pattern that llmstxt.org shows."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from shared.sitemap import llms_writer
from shared.sitemap.llms_writer import TitledPage
from shared.sitemap.xml_text import legal

BASE = "https://www.example.com/"
HOSTILE = st.text(
    st.sampled_from("[]()<>!`*_#~|\\&;:/@.-+=>1 \n\r\t\x0b\x0c\x85\u2028\u2029awh")
    | st.characters(codec="utf-8"),
    min_size=1, max_size=40,
).filter(lambda text: legal(text).strip() != "")  # fmt: skip
PATHS = st.text("ab()[]<>\\%20&'\"*_~!?=;", max_size=12).map(BASE.__add__)
PAGES = st.builds(TitledPage, PATHS, HOSTILE, HOSTILE | st.just(""))
SAID = re.compile(r"-\s*\[(?P<title>[^\]]+)\]\((?P<url>[^\)]+)\)(?::\s*(?P<desc>.*))?")
"""The pattern of llmstxt.org's own reader."""


def shown(text: str) -> str:
    """A text as people see it: white space as one blank, without the joint that has no width."""
    return " ".join(legal(text).split()).replace("\u2060", "")


def inline(tokens: list[Token]) -> str:
    return "".join(each.content for each in tokens if each.type in {"text", "text_special"})


def blocks(content: bytes) -> list[Token]:
    return MarkdownIt("commonmark").parse(content.decode())


@given(HOSTILE, HOSTILE | st.just(""), st.lists(PAGES, min_size=1, max_size=5))
def test_a_title_opens_no_line_no_link_no_mark_and_no_html(
    title: str, summary: str, pages: list[TitledPage]
) -> None:
    content = llms_writer.render(title, summary, {"posts": pages})
    tokens = blocks(content)

    kinds = [each.type for each in tokens if each.type.endswith("_open") and each.level == 0]
    assert kinds == [
        "heading_open", *(["blockquote_open"] if summary else []), "heading_open",
        "bullet_list_open",
    ]  # fmt: skip
    html = [each for each in tokens if each.type == "html_block"]
    assert len(html) == 1, "only our own mark"
    found = [each.children or [] for each in tokens if each.type == "inline"]
    head, *rest = found
    assert shown(inline(head)) == shown(title)
    if summary:
        assert shown(inline(rest.pop(0))) == shown(summary)
    assert shown(inline(rest.pop(0))) == "posts"
    assert len(rest) == len(pages)
    for page, line in zip(pages, rest, strict=True):
        assert [each.type for each in line if each.type not in {"text", "text_special"}] == [
            "link_open", "link_close",
        ]  # fmt: skip
        said = f"{shown(page.title)}: {shown(page.description)}" if page.description else page.title
        assert shown(inline(line)) == shown(said)


@given(st.lists(PAGES, min_size=1, max_size=5))
def test_a_reader_by_pattern_finds_each_page_once(pages: list[TitledPage]) -> None:
    text = llms_writer.render("Site", "", {"posts": pages}).decode()
    found = [SAID.fullmatch(line) for line in text.split("\n") if line.startswith("- ")]

    assert [each and each["url"] for each in found] == [
        page.loc.translate({40: "%28", 41: "%29", 60: "%3C", 62: "%3E", 92: "%5C"})
        for page in pages
    ]


@pytest.mark.parametrize(
    "given", ["see https://evil.example/", "www.evil.example", "a@evil.example", "HTTP://x.example"]
)
def test_an_address_in_a_text_is_no_link_for_readers_that_link_addresses(given: str) -> None:
    assert llms_writer.text(given) != given
    assert shown(llms_writer.text(given)) == given


@given(HOSTILE)
def test_only_a_file_of_ours_is_ours(text: str) -> None:
    assert llms_writer.is_ours(llms_writer.render(text, text, {}))
    assert not llms_writer.is_ours(f"# {text}\n".encode())
    assert not llms_writer.is_ours(b"")
