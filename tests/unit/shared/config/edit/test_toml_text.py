"""An edit of TOML adds or removes one table, and leaves every other byte as it is."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.config.edit.toml_text import add_table, remove_table
from shared.errors import InvalidError

NAMES = st.sampled_from(["a", "b", "c-1", "0", "-", "sites", "sections", "long-name-of-it"])
REMARKS = st.lists(
    st.sampled_from(
        ["", "# a remark\n", "  # [sites.x]\n", "# a\u2028[b]\n", '# secrets = ["""\n', "\n"]
    ),
    max_size=4,
).map("".join)
VALUES = st.sampled_from([
    '"text" # why', "12", "true", "[1, 2]", "[\n  1, # one\n  2,\n]", "'\u2028[b]'",
    '"""\n[no.header]\n# no\n"""', "'''\na = 1\n'''", "{ a = 1, b = [2] }", "2030-01-01T00:00:00Z",
    '"\\u00e9 = # ["',
])  # fmt: skip
FIELDS = st.lists(st.tuples(NAMES, VALUES, REMARKS), max_size=4, unique_by=lambda each: each[0])
NEW = {"base_url": "https://a.example/", "secrets": ['whsec_"\\', "é\x7f"], "on": True, "n": 3}


@st.composite
def tables(draw: st.DrawFn, name: str) -> str:
    """A site with sections, each with values and remarks."""
    found = f"[sites.{name}]{draw(st.sampled_from(['', ' # why', '   ']))}\n" + draw(fields())
    for section in draw(st.lists(NAMES, max_size=2, unique=True)):
        found += f"[ sites . {name} . sections.'{section}' ]\n" + draw(fields(""))
    return found


@st.composite
def fields(draw: st.DrawFn, first: str = "web = 1\n") -> str:
    lines = [f'"key {name}" = {value}\n{more}' for name, value, more in draw(FIELDS)]
    return draw(REMARKS) + first + draw(REMARKS) + "".join(lines)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A configuration, and the names of its sites, which other tables may stand between."""
    names = draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    text = draw(REMARKS) + "body_limit = 2048 # bytes\n"
    for number, name in enumerate(names):
        text += draw(tables(name)) + draw(st.sampled_from(["", "\n"]))
        text += f"[other{number}]\n" * draw(st.booleans())
    return text if draw(st.booleans()) else text.rstrip("\n"), names


def lines_of(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def without(lines: list[str], gone: list[str]) -> bool:
    """Whether `gone` are `lines` with some of them taken out, and none moved or changed."""
    rest = iter(lines)
    return all(line in rest for line in gone)


@settings(max_examples=40)
@given(documents(), NAMES.map(lambda name: f"new-{name}"))
def test_a_new_site_changes_no_other_line(document: tuple[str, list[str]], name: str) -> None:
    text, _ = document
    before: dict[str, Any] = tomllib.loads(text)

    edited = add_table(text, ("sites", name), NEW)

    assert tomllib.loads(edited) == before | {"sites": before["sites"] | {name: NEW}}
    assert without(lines_of(edited), lines_of(text))


@settings(max_examples=40)
@given(documents())
def test_a_new_section_stands_behind_its_site(document: tuple[str, list[str]]) -> None:
    text, names = document
    edited = add_table(text, ("sites", names[0], "sections", "new-blog"), {"split": "month"})

    sections = tomllib.loads(edited)["sites"][names[0]]["sections"]
    assert sections["new-blog"] == {"split": "month"}
    assert without(lines_of(edited), lines_of(text))
    headers = [line for line in lines_of(edited) if line.startswith("[sites.")]
    at = headers.index(f"[sites.{names[0]}.sections.new-blog]")
    assert not any(line.startswith(f"[sites.{names[1]}]") for line in headers[:at])


@settings(max_examples=40)
@given(documents(), st.data())
def test_a_removed_site_takes_no_other_line_along(
    document: tuple[str, list[str]], data: st.DataObject
) -> None:
    text, names = document
    name = data.draw(st.sampled_from(names))
    before = tomllib.loads(text)
    wanted = before | {"sites": {n: site for n, site in before["sites"].items() if n != name}}

    edited = remove_table(text, ("sites", name))

    assert tomllib.loads(edited) == wanted
    assert without(lines_of(text), lines_of(edited))


@settings(max_examples=40)
@given(documents(), NAMES.map(lambda name: f"new-{name}"))
def test_what_is_added_and_removed_leaves_the_text_as_it_was(
    document: tuple[str, list[str]], name: str
) -> None:
    text, _ = document
    edited = remove_table(add_table(text, ("sites", name), NEW), ("sites", name))

    assert [line for line in lines_of(edited) if line.strip()] == [
        line for line in lines_of(text) if line.strip()
    ]


FILE = """\
# The shop's configuration.
[sites.shop]
base_url = "https://shop.example/"
# form = "xml"

# The blog, since 2019.
[sites.blog]
base_url = "https://blog.example/"
# The archive stays apart.
[sites.blog.sections.archive]

# Who may look.
[console.users.ann]
role = "viewer"
"""


def test_remarks_before_a_header_stay_with_what_they_are_about() -> None:
    edited = remove_table(FILE, ("sites", "blog"))

    gone = ('[sites.blog]\nbase_url = "https://blog.example/"\n', "[sites.blog.sections.archive]\n")
    assert edited == FILE.replace(gone[0], "").replace(gone[1], "")


def test_a_table_is_added_behind_those_it_belongs_to() -> None:
    edited = add_table(FILE, ("sites", "shop", "sections", "news"), {"news": True})

    assert '# form = "xml"\n\n[sites.shop.sections.news]\nnews = true\n\n# The blog' in edited


@pytest.mark.parametrize(
    "text",
    [
        'sites.a.url = "x" # dotted\n',
        "sites = { a = { url = 'x' } } # inline\n",
        "[sites]\na = { url = 'x' } # inline\nb.url = 'y' # dotted\n",
    ],
)
def test_other_notations_are_edited_as_well(text: str) -> None:
    edited = add_table(text, ("sites", "new"), {"url": "z"})

    assert tomllib.loads(edited)["sites"]["new"] == {"url": "z"}
    assert tomllib.loads(edited)["sites"]["a"] == {"url": "x"}
    assert all(f"# {kind}" in edited for kind in ("dotted", "inline") if kind in text)
    assert tomllib.loads(remove_table(edited, ("sites", "new"))) == tomllib.loads(text)


def test_what_cannot_be_edited_is_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidError, match="change the file by hand"):
        add_table("sites = 3\n", ("sites", "new", "x"), {})
