"""What the console needs no store for: its settings, who is ours, words and charts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import MutableMapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from shared.clock import span
from shared.config.console import Console, User
from tests.unit.configured import SITE, Load, faults
from webhook.console import csrf
from webhook.console.presentation import charts, template_filters
from webhook.console.presentation.charts import Point, Window

TOKEN = "canary-4f1d-tweet-tweet-tweet"
ALICE = f'[console.users.alice]\ntoken = "{TOKEN}"\n'
HERE = "https://sitemaps.example.com"


def test_without_users_there_is_no_console(load: Load) -> None:
    assert load(SITE).console == Console()


def test_a_user_reads_unless_told_that_it_may_act(load: Load) -> None:
    users = load(SITE + ALICE + ALICE.replace("alice", "bob") + 'role = "operator"').console.users

    assert {name: user.role for name, user in users.items()} == {
        "alice": "viewer", "bob": "operator",
    }  # fmt: skip


def test_a_token_can_be_given_by_its_digest_alone(load: Load) -> None:
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    text = f'[console.users.bob]\ntoken_sha256 = "{digest}"\n'
    users = load(SITE + ALICE + text).console.users

    assert users["alice"].digest == users["bob"].digest == bytes.fromhex(digest)
    assert users["alice"].stamp == users["bob"].stamp != digest


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("[console.users.alice]", "console.users.alice"),
        (ALICE.replace(TOKEN, "x" * 23), "console.users.alice.token"),
        (ALICE + f'token_sha256 = "{"0" * 64}"', "console.users.alice"),
        ('[console.users.alice]\ntoken_sha256 = "0A"', "console.users.alice.token_sha256"),
        (ALICE + 'role = "admin"', "console.users.alice.role"),
        (ALICE.replace("alice", '"Al ice"'), "console.users.Al ice"),
        ('[console]\norigin = "http://sitemaps.example.com"', "console.origin.0"),
        ('[console]\norigin = "https://a.example/admin"', "console.origin.0"),
        ('[console]\norigin = ["https://a.example", "ftp://a.example"]', "console.origin.1"),
        ("[console]\nsession_hours = 0", "console.session_hours"),
        ("[console]\nsession = 1", "console.session"),
    ],
)
def test_what_is_wrong_is_named_and_the_token_is_not_shown(
    load: Load, text: str, field: str
) -> None:
    found = faults(load, SITE + text)

    assert list(found) == [field]


def test_the_environment_reaches_into_the_table(
    load: Load, environment: MutableMapping[str, str]
) -> None:
    environment["SITEMAPD_CONSOLE__SESSION_HOURS"] = "3"
    environment["SITEMAPD_CONSOLE__USERS__BOB__TOKEN"] = TOKEN

    console = load(SITE + "[console]\nsession_hours = 5\n" + ALICE).console

    assert console.session_hours == 3
    assert set(console.users) == {"alice", "bob"}


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("sitemaps.example.com", HERE),
        ("sitemaps.example.com:8443", HERE),
        ("SITEMAPS.example.com", HERE),
        ("127.0.0.1:8080", None),
        ("sitemaps.example.com.evil.example", None),
        ("evil.example", None),
        ("", None),
        ("[", None),
    ],
)
def test_a_configured_console_is_at_its_own_name_only(host: str, known: str | None) -> None:
    assert csrf.origin(Console(origin=(HERE,)), host) == known  # type: ignore[call-arg]


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:1", "[::1]:8080", "127.9.9.9"])
def test_an_unconfigured_one_is_at_the_names_of_this_machine(host: str) -> None:
    assert csrf.origin(Console(), host) == f"http://{host}"  # type: ignore[call-arg]


@pytest.mark.parametrize("host", ["localhost.evil.example", "10.0.0.1", "example.com:8080"])
def test_and_at_no_other(host: str) -> None:
    """RELIABILITY T29: another site's name may lead here (DNS rebinding)."""
    assert csrf.origin(Console(), host) is None  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("headers", "ours"),
    [
        ({"origin": HERE}, True),
        ({"origin": "null"}, False),
        ({"origin": "https://evil.example"}, False),
        ({"origin": HERE + ":8443"}, False),
        ({"origin": "https://evil.example", "sec-fetch-site": "same-origin"}, False),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "same-site", "referer": HERE + "/admin/"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"referer": HERE + "/admin/"}, True),
        ({"referer": HERE + ".evil.example/admin/"}, False),
        ({}, False),
    ],
)
def test_a_form_of_ours_is_told_by_its_headers(headers: dict[str, str], ours: bool) -> None:
    assert csrf.ours(headers, HERE) is ours


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/admin/", "//evil.example/admin/", "/\\evil.example", "/admin",
        "/v1/", "javascript:alert(1)", "/admin/\r\nx: y", "", "/administrator/",
    ],
)  # fmt: skip
def test_a_login_leads_nowhere_else(address: str) -> None:
    assert csrf.inside(address) == "/admin/"


def test_a_login_leads_back_to_where_one_came_from() -> None:
    assert csrf.inside("/admin/inspector?loc=a%20b") == "/admin/inspector?loc=a%20b"


def test_times_are_said_from_now_and_exactly() -> None:
    said = template_filters.ago("2026-11-21T10:00:00+00:00", 1_795_255_290)

    assert said == (
        '<time datetime="2026-11-21T10:00:00+00:00" title="2026-11-21 10:00:00 UTC">'
        "1 min ago</time>"
    )
    assert (
        template_filters.ago(None) == template_filters.ago("") == '<span class="quiet">never</span>'
    )
    assert template_filters.ago("<b>", 0) == "&lt;b&gt;"
    assert ">in 30 s<" in template_filters.ago(30, 0)
    assert ">1970-01-01<" in template_filters.ago(0, 365 * 86_400)


def test_values_are_said_with_their_units() -> None:
    assert [span(s) for s in (0, 59.9, 60, 7_200, 172_800)] == [
        "0 s", "59 s", "1 min", "2 h", "2 days",
    ]  # fmt: skip
    assert [template_filters.size(n) for n in (999, 1_000, 52_428_800)] == [
        "999 bytes",
        "1.0 KB",
        "52.4 MB",
    ]
    assert [template_filters.plural(n, "file") for n in (1, 1_000)] == ["1 file", "1,000 files"]
    assert template_filters.command(["sitemapd", "entry", "https://a.example/it's"]).endswith(
        "'\"'\"'s'"
    )


def minutes(*values: float) -> list[Point]:
    return [Point(60 * n, value, value * 2, value * 3) for n, value in enumerate(values)]


def test_a_chart_has_a_title_lines_and_a_table_of_the_same() -> None:
    tree = html.fromstring(str(charts.latency(minutes(1.5, 2.0), "Latency <b>", "lat")))

    assert tree.findtext(".//title") == "Latency <b>"
    assert "last: p50 2.0 ms, p95 4.0 ms, p99 6.0 ms" in (tree.findtext(".//desc") or "")
    rows = [[cell.text for cell in row] for row in tree.findall(".//tbody/tr")]
    assert rows == [["00:01", "2.0", "4.0", "6.0"], ["00:00", "1.5", "3.0", "4.5"]]
    labelled = tree.find(".//svg").get("aria-labelledby").split()
    assert [tree.get_element_by_id(ident).tag for ident in labelled] == ["title", "desc"]
    assert not tree.xpath("//@style | //script")


def test_a_minute_without_events_breaks_the_lines() -> None:
    points = [Point(0, 1, 1, 1), Point(60, 1, 1, 1), Point(300, 1, 1, 1)]
    tree = html.fromstring(str(charts.latency(points, "Latency", "lat")))

    line, alone = tree.xpath("//path[contains(@class, 'p50')]/@d")
    assert (line.count("M"), line.count("L")) == (1, 1)
    assert alone.endswith("h0"), "a point that no line leads to is a dot"


def test_counts_are_drawn_over_the_window_that_is_asked_for() -> None:
    points = [(3_600, 4, 3), (3_660, 0, 0)]
    drawn = charts.counts(points, ("decided", "changed"), "Events", "ev", Window(0, 7_140, 60))
    tree = html.fromstring(str(drawn))

    assert "From 00:00 to 02:00 UTC; last: decided 0, changed 0" in (tree.findtext(".//desc") or "")
    (path,) = tree.xpath("//path[contains(@class, 'decided')]/@d")
    assert path == "M300.2 120v-96.0h4.50v96.0z", "an hour in two, 4 of 5"
    hovers = tree.xpath("//rect[@class='hover']/title/text()")
    assert hovers == ["01:00 UTC: decided 4, changed 3", "01:01 UTC: decided 0, changed 0"]
    assert tree.xpath("//div[@class='clock']/span/text()")[0] == "00:00"
    rows = [[cell.text for cell in row] for row in tree.findall(".//tbody/tr")]
    assert rows == [["01:01", "0", "0"], ["01:00", "4", "3"]]
    assert charts.counts((), ("decided", "changed"), "Events", "ev") == ""


def test_an_import_does_not_flatten_the_rest_and_is_named() -> None:
    points = [(60 * n, 120_000 if n == 7 else 20 + n, 1) for n in range(30)]
    tree = html.fromstring(
        str(charts.counts(points, ("decided", "changed"), "Events", "ev", Window(0, 1_740, 60)))
    )

    assert tree.xpath("//div[@class='scale']/span/text()") == ["50", "25", "0"]
    assert len(tree.find_class("above")) == 1
    assert "Above the scale: 120,000 at 00:07" in tree.find_class("over")[0].text_content()
    rows = [row[1].text for row in tree.findall(".//tbody/tr")]
    assert "120,000" in rows


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_a_scale_holds_most_values_and_all_of_them_unless_some_are_far_off(
    values: list[float],
) -> None:
    top = charts.scale(values)
    some = [value for value in values if value > 0]

    assert top > 0
    assert sum(value <= top for value in values) >= 0.9 * len(values) - 1
    if some and max(some) <= 4 * min(some):
        assert top >= max(values)


def test_without_points_there_is_no_chart() -> None:
    assert charts.latency([], "Latency", "lat") == ""


@given(st.floats(0, 1e9, exclude_min=True))
def test_the_scale_ends_at_a_round_number_above_all(value: float) -> None:
    top = charts.nice(value)

    assert value <= top <= max(1, value * 2.5)
    assert f"{top:.0e}"[0] in "125"


@given(st.lists(st.floats(0, 1e6), max_size=60), st.floats(0, 10), st.floats(0, 10))
def test_small_charts_stay_in_their_box(values: list[float], part: float, whole: float) -> None:
    spark = html.fromstring(str(charts.spark(values, 'of "pages"')))
    bar = html.fromstring(str(charts.bar(part, whole, "share")))

    assert spark.get("aria-label") == 'of "pages"'
    (path,) = spark.findall("path")
    heights = [float(part) for part in re.findall(r"v-([0-9.]+)h4", path.get("d", ""))]
    assert len(heights) == len(values)
    assert all(0.5 <= height <= 24 for height in heights)
    assert 0 <= float(bar.findall("rect")[1].get("width", "")) <= 100


def test_no_user_shows_its_token() -> None:
    user = User(token=TOKEN)  # type: ignore[call-arg, arg-type]

    assert TOKEN not in f"{user!r} {user} {user.model_dump()} {user.model_dump_json()}"
