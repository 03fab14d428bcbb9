"""Videos of a page, at the exact boundaries of their rules (PROTOCOL 1.9)."""

from __future__ import annotations

from typing import Any

import pytest

from shared.sitemap.extensions import videos
from shared.sitemap.extensions.report import ValueReport
from tests.unit.extensions import LOC, VIDEO

URL = "https://cdn.example.net/v.mp4"


def take(video: dict[str, Any], *, deprecated: bool = False) -> tuple[Any, ValueReport]:
    report = ValueReport()
    found = videos.take([video], report, loc=LOC, deprecated=deprecated)
    return (found[0] if found else None), report


def taken(**members: Any) -> Any:
    """The canonical video with these members, which is without faults."""
    video, report = take({**VIDEO, **members})
    assert report.faults == []
    return video


def fault(**members: Any) -> tuple[str, str]:
    """Field and rule of the one fault of a video with these members."""
    _, report = take({**VIDEO, **members})
    ((field, rule, detail),) = report.faults
    assert detail
    return field.removeprefix("videos[0]").removeprefix("."), rule.removeprefix("PROTOCOL ")


@pytest.mark.parametrize("name", ["thumbnail_loc", "title", "description"])
def test_thumbnail_title_and_description_are_required(name: str) -> None:
    """PROTOCOL V1."""
    assert fault(**{name: None})[0] == name


def test_a_video_needs_its_file_or_its_player() -> None:
    """PROTOCOL V1."""
    assert fault(content_loc=None) == ("", "V1")
    assert taken(content_loc=None, player_loc=URL)["player_loc"] == URL
    assert taken(player_loc=URL)["content_loc"] == URL


def test_children_are_rendered_in_the_order_of_the_schema_however_they_are_sent() -> None:
    """PROTOCOL V2."""
    video = taken(live=True, tags=["b", "a"], duration=9)
    reordered = dict(reversed({**VIDEO, "live": True, "tags": ["b", "a"], "duration": 9}.items()))

    assert videos.render((video,)) == videos.render((take(reordered)[0],))
    assert videos.render((video,)).endswith(
        "<video:duration>9</video:duration><video:tag>b</video:tag><video:tag>a</video:tag>"
        "<video:live>yes</video:live></video:video>"
    )


@pytest.mark.parametrize(("name", "most"), [("title", 100), ("description", 2_048)])
def test_texts_have_their_longest_length(name: str, most: int) -> None:
    """PROTOCOL V3."""
    assert taken(**{name: "\u00e9" * most})[name] == "\u00e9" * most
    assert fault(**{name: "a" * (most + 1)}) == (name, "V3")


def test_an_uploader_is_a_name_or_a_name_and_a_page_on_the_same_domain() -> None:
    """PROTOCOL V3."""
    longest = "u" * 255
    info = "https://example.com/who"

    assert taken(uploader=longest)["uploader"] == longest
    assert taken(uploader={"name": "U"})["uploader"] == "U"
    assert taken(uploader={"name": "U", "info": info})["uploader"]["info"] == info
    assert fault(uploader=longest + "u") == ("uploader.name", "V3")
    assert fault(uploader={"name": "U", "info": URL}) == ("uploader.info", "V3")
    assert fault(uploader={"info": info}) == ("uploader.name", "V3")


@pytest.mark.parametrize("value", [1, 28_800, "1", "28800"])
def test_a_duration_is_a_number_of_seconds(value: object) -> None:
    """PROTOCOL V4."""
    assert taken(duration=value)["duration"] == str(value)


@pytest.mark.parametrize("value", [0, 28_801, -1, 1.5, "0", "28801", "", "1s", True, 10**400, []])
def test_a_duration_beyond_its_limits_is_refused(value: object) -> None:
    """PROTOCOL V4: 0 is in the schema and not in Google's rules."""
    assert fault(duration=value) == ("duration", "V4")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0"),
        (5, "5.0"),
        (4.5, "4.5"),
        ("4.50", "4.5"),
        (1e-9, "0.000000001"),
        ("5.0", "5.0"),
        (4.2, "4.2"),
        (2.3, "2.3"),
        (0.1 + 0.2, "0.3"),
        (1e-20, "0.0"),
        (3.3333333333333335, None),
    ],
)
def test_a_rating_is_a_decimal_from_0_to_5(value: object, text: str) -> None:
    """PROTOCOL V5."""
    assert taken(rating=value)["rating"] == (text or str(value))


@pytest.mark.parametrize(
    "value", [-0.1, 5.1, 6, "5.01", "-1", "4,5", float("nan"), float("inf"), True, "", 10**400, {}]
)
def test_a_rating_beyond_its_limits_is_refused(value: object) -> None:
    """PROTOCOL V5."""
    assert fault(rating=value) == ("rating", "V5")


def test_views_are_counted_from_nought() -> None:
    """PROTOCOL V5."""
    assert taken(view_count=0)["view_count"] == "0"
    assert taken(view_count="0012")["view_count"] == "12"
    assert fault(view_count=-1) == ("view_count", "V5")


@pytest.mark.parametrize("name", ["family_friendly", "requires_subscription", "live"])
def test_flags_are_published_as_yes_or_no(name: str) -> None:
    """PROTOCOL V5."""
    said = [taken(**{name: value})[name] for value in (True, "YES", "yes", False, "No")]

    assert said == ["yes", "yes", "yes", "no", "no"]
    assert fault(**{name: 1}) == (name, "V5")


def test_dates_are_published_as_every_date_is() -> None:
    """PROTOCOL V6."""
    moment = "2026-11-21T10:20+01:00"

    assert taken(publication_date=moment)["publication_date"] == "2026-11-21T09:20:00Z"
    assert fault(publication_date="21.11.2026") == ("publication_date", "M1")
    assert fault(expiration_date="1969-12-31") == ("expiration_date", "M1")


@pytest.mark.parametrize(
    ("date", "expires"),
    [
        ("2026-11-21T10:20:30Z", 1_795_256_430_000),
        ("1970-01-01", 86_400_000),
        ("1970-01-01T00:00:00Z", 0),
        (None, None),
    ],
)
def test_a_video_expires_at_its_moment_or_after_its_day(
    date: str | None, expires: int | None
) -> None:
    """PROTOCOL V6: the date after which it is no longer available."""
    assert videos.expires_ms(taken(expiration_date=date)) == expires


def test_a_restriction_lists_countries_in_upper_case() -> None:
    """PROTOCOL V7."""
    given = {"relationship": "Allow", "countries": ["de", "AT", "de"]}
    video = taken(restriction=given)

    assert video["restriction"] == {"countries": "AT DE", "relationship": "allow"}
    assert ('<video:restriction relationship="allow">AT DE</video:restriction>') in videos.render(
        (video,)
    )
    assert taken(restriction={**given, "countries": "DE  AT"}) == video


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"relationship": "allow", "countries": ["UK"]}, ".countries"),
        ({"relationship": "allow", "countries": []}, ".countries"),
        ({"relationship": "allow", "countries": ""}, ".countries"),
        ({"relationship": "only", "countries": "DE"}, ".relationship"),
        ({"countries": "DE"}, ".relationship"),
        ("DE", ".relationship"),
        ({"relationship": "allow"}, ".countries"),
    ],
)
def test_a_restriction_needs_a_relationship_and_countries_that_exist(
    value: object, field: str
) -> None:
    """PROTOCOL V7."""
    assert fault(restriction=value) == (f"restriction{field}", "V7")


def test_platforms_are_web_mobile_and_tv() -> None:
    """PROTOCOL V7."""
    given = {"relationship": "deny", "platforms": ["web", "TV"]}

    assert taken(platform=given)["platform"]["platforms"] == "tv web"
    assert fault(platform={**given, "platforms": ["radio"]}) == ("platform.platforms", "V7")


@pytest.mark.parametrize("name", ["content_loc", "player_loc"])
def test_neither_file_nor_player_is_the_page_itself(name: str) -> None:
    """PROTOCOL V8."""
    assert fault(**{name: LOC.upper().replace("/A", "/a") + "#t"}) == (name, "V8")


@pytest.mark.parametrize("url", ["rtmp://cdn.example.net/v", "/v.mp4", "mms://a.b/", "file:///v"])
def test_streaming_protocols_are_refused(url: str) -> None:
    """PROTOCOL V8."""
    assert fault(content_loc=url) == ("content_loc", "L1")
    assert taken(content_loc="ftp://cdn.example.net:21/v")["content_loc"] == (
        "ftp://cdn.example.net/v"
    )


@pytest.mark.parametrize("end", [".html", ".HTM", ".swf?a=1"])
def test_a_file_that_looks_like_a_page_or_flash_is_warned_about(end: str) -> None:
    """PROTOCOL V8."""
    _, report = take({**VIDEO, "content_loc": f"https://cdn.example.net/v{end}"})

    assert [(field, rule) for field, rule, _ in report.warnings] == [
        ("videos[0].content_loc", "PROTOCOL V8")
    ]


DEPRECATED = {
    "category": "Cooking", "gallery_loc": {"loc": URL, "title": "G"},
    "price": [{"value": 1.99, "currency": "eur", "type": "RENT", "resolution": "hd"}],
    "tvshow": {"show_title": "S", "video_type": "full", "season_number": 1},
    "content_segment_loc": [{"loc": URL, "duration": 9}], "id": [{"value": "1", "type": "url"}],
}  # fmt: skip


@pytest.mark.parametrize("name", DEPRECATED)
def test_deprecated_tags_are_named_and_left_out_unless_the_site_wants_them(name: str) -> None:
    """PROTOCOL V9."""
    members = {**VIDEO, name: DEPRECATED[name]}
    without, warned = take(members)
    kept, also_warned = take(members, deprecated=True)

    for report in (warned, also_warned):
        assert report.faults == []
        ((field, rule, detail),) = report.warnings
        assert (field, rule) == (f"videos[0].{name}", "PROTOCOL V9")
        assert name in detail
    assert name not in without
    assert f"<video:{name}" not in videos.render((without,))
    assert f"<video:{name}" in videos.render((kept,))
    assert videos.read(videos.render((kept,))) == (kept,)


@pytest.mark.parametrize("name", ["allow_embed", "autoplay"])
def test_deprecated_attributes_of_the_player_are_named_and_left_out(name: str) -> None:
    """PROTOCOL V9."""
    player = {"loc": URL, name: "yes"}
    without, report = take({**VIDEO, "player_loc": player})
    kept, _ = take({**VIDEO, "player_loc": player}, deprecated=True)

    assert [name in detail for _, _, detail in report.warnings] == [True]
    assert without["player_loc"] == URL
    assert kept["player_loc"] == player


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("price", [{"value": 1}], "price[0]"),
        ("price", [{"currency": "EUR"}], "price[0]"),
        ("price", [{"value": -1, "currency": "EUR"}], "price[0].value"),
        ("price", [{"value": 1, "currency": "EURO"}], "price[0].currency"),
        ("price", {"value": 1, "currency": "EUR"}, "price"),
        ("tvshow", {"show_title": "S", "video_type": "trailer"}, "tvshow.video_type"),
        ("tvshow", {"show_title": "S", "video_type": "clip", "season_number": 0},
         "tvshow.season_number"),
        ("id", [{"value": "1"}], "id[0].type"),
        ("category", "c" * 257, "category"),
    ],
)  # fmt: skip
def test_deprecated_tags_are_checked_all_the_same(name: str, value: Any, field: str) -> None:
    """PROTOCOL V3, V9."""
    _, report = take({**VIDEO, name: value})

    assert field in {found[0].removeprefix("videos[0].") for found in report.faults}


def test_32_tags_are_the_most() -> None:
    """PROTOCOL V2."""
    tags = [f"t{number}" for number in range(33)]

    assert taken(tags=tags[:32])["tags"] == tags[:32]
    assert fault(tags=tags) == ("tags", "V2")


def test_1000_videos_are_the_most() -> None:
    """PROTOCOL V11: our own cap. V10, whether a video belongs to its page, no program can see."""
    report = ValueReport()
    most = videos.take([VIDEO] * 1_000, report, loc=LOC, deprecated=False)
    assert (len(most), report.faults) == (1_000, [])

    videos.take([VIDEO] * 1_001, report, loc=LOC, deprecated=False)
    ((field, rule, _),) = report.faults
    assert (field, rule) == ("videos", "PROTOCOL V11")


def test_every_fault_of_every_video_is_found_at_once() -> None:
    report = ValueReport()
    videos.take([{**VIDEO, "duration": 0, "rating": 9}, {}, 7], report, loc=LOC, deprecated=False)

    assert [field for field, _, _ in report.faults] == [
        "videos[0].duration", "videos[0].rating", "videos[1].thumbnail_loc", "videos[1].title",
        "videos[1].description", "videos[2]",
    ]  # fmt: skip


def test_a_warning_that_repeats_itself_is_said_once() -> None:
    report = ValueReport()
    old = {**VIDEO, "category": "Cooking"}
    videos.take([old] * 50, report, loc=LOC, deprecated=False)

    assert len(report.warnings) == 1
