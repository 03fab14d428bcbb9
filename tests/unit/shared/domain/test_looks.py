"""What the answer of a page means for its listing, and what is kept of it (PROTOCOL L8)."""

from __future__ import annotations

from typing import Any

import pytest

from shared.domain.looks import record as records
from shared.domain.looks.answers import Grade, PageAnswer, judge
from shared.domain.looks.record import LookRecord

HTML = {"content_type": "text/html"}


@pytest.mark.parametrize(
    ("answer", "grade", "why"),
    [
        ({"status": 200} | HTML, Grade.GOOD, "200"),
        ({"status": 200, "content_type": "application/pdf"}, Grade.GOOD, "200"),
        ({"status": 200, "content_type": "application/json"}, Grade.ODD, "application/json"),
        ({"status": 200}, Grade.ODD, "of no type"),
        ({"status": 200, "language": "fr-CA"} | HTML, Grade.ODD, "fr-CA"),
        ({"status": 200, "language": "de-AT"} | HTML, Grade.GOOD, "200"),
        ({"status": 200, "noindex": "header"} | HTML, Grade.BROKEN, "noindex in its header"),
        ({"status": 200, "canonical": "https://a.b/"} | HTML, Grade.BROKEN, "https://a.b/"),
        ({"status": 301, "redirect_to": "https://a.b/"}, Grade.BROKEN, "https://a.b/ (301)"),
        ({"status": 302}, Grade.BROKEN, "redirects (302)"),
        ({"status": 204}, Grade.BROKEN, "204"),
        ({"status": 401}, Grade.BROKEN, "401"),
        ({"status": 404}, Grade.BROKEN, "404"),
        ({"status": 410}, Grade.BROKEN, "410"),
        ({"status": 429}, Grade.UNSURE, "429"),
        ({"status": 503}, Grade.UNSURE, "503"),
        ({"status": 0, "fault": "silent"}, Grade.UNSURE, "no answer: silent"),
    ],
)
def test_an_answer_says_whether_the_page_belongs_into_a_sitemap(
    answer: dict[str, Any], grade: Grade, why: str
) -> None:
    verdict = judge(PageAnswer(**answer), ("de", "x-default"))

    assert verdict.grade is grade
    assert why in verdict.why


def test_a_page_that_is_listed_for_no_language_may_have_any() -> None:
    answer = PageAnswer(200, language="fr", content_type="text/html")

    assert judge(answer).grade is judge(answer, ("x-default",)).grade is Grade.GOOD


def test_a_record_keeps_the_last_look_and_the_proof_of_the_last_change() -> None:
    first = records.after(None, 10, 200, Grade.GOOD, b"a" * 8)
    same = records.after(first, 20, 200, Grade.GOOD, b"a" * 8)
    changed = records.after(same, 30, 200, Grade.ODD, b"b" * 8)
    silent = records.after(changed, 40, 503, Grade.UNSURE, b"")

    assert first == LookRecord(10, 200, Grade.GOOD, True, b"a" * 8)
    assert same == first._replace(at_s=20)
    assert changed == LookRecord(30, 200, Grade.ODD, True, b"b" * 8, b"a" * 8, 30, fresh=True)
    explained = records.after(same, 30, 200, Grade.ODD, b"b" * 8, told_s=25)
    assert explained == changed._replace(fresh=False)
    assert silent == changed._replace(at_s=40, status=503, grade=Grade.UNSURE)
    third = records.after(silent, 50, 200, Grade.GOOD, b"", number=19)
    assert third == silent._replace(at_s=50, status=200, grade=Grade.GOOD, round=3)
    for each in (first, same, changed, silent, third, LookRecord(1, 0, Grade.UNSURE, round=15)):
        assert LookRecord.unpack(each.pack()) == each
    assert [len(each.pack()) for each in (LookRecord(1, 404, Grade.BROKEN), changed)] == [7, 27]


def test_a_look_is_of_the_round_that_it_was_in_also_if_the_next_begins_in_its_second() -> None:
    seen = records.after(None, 1_000, 200, Grade.GOOD, b"", number=7)

    assert seen.is_of(7, 1_000_900)
    assert not seen.is_of(8, 1_000_950)
    assert not seen.is_of(23, 9_000_000), "sixteen rounds later"
