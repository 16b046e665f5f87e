"""The template language: what is rendered to what, what is refused where, and that nothing is rendered twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horarium.core.document.text_template import (
    DIRECTIVES,
    MAX_EXPRESSIONS,
    MAX_RENDERED_BYTES,
    NotKnownYet,
    Rendering,
    TemplateError,
    check_names,
    expressions_of,
    format_date,
    parse,
)
from horarium.core.recurrence.zone import load_zone
from horarium.instant import from_rfc3339

SECRET = {"$secret": "erp"}


class Facts:
    zone = load_zone("Europe/Istanbul")
    values: ClassVar[dict[str, Any]] = {
        "nominal": from_rfc3339("2026-03-08T21:05:07Z"),
        "previous_nominal": None,
        "namespace": "billing",
        "inputs": {
            "topic": "tea {{ nominal }}",
            "n": 3,
            "none": None,
            "yes": True,
            "rows": [{"a": 1}, "ü"],
            "token": SECRET,
            "deep": [{"token": SECRET}],
        },
    }

    def value(self, name: str) -> Any:
        if name == "run_id":
            raise NotKnownYet(name)
        if name not in self.values:
            raise LookupError(f"{name} is not here")
        return self.values[name]


def rendered(value: Any) -> Any:
    return Rendering(Facts()).json(value)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("plain } text {", "plain } text {"),
        ("{{ nominal }}", "2026-03-08T21:05:07Z"),
        ("{{nominal}}|{{\n nominal \t}}", "2026-03-08T21:05:07Z|2026-03-08T21:05:07Z"),
        ('{{ nominal | date("%Y-%m-%d %H:%M:%S %z") }}', "2026-03-09 00:05:07 +0300"),
        ("{{ nominal|date('%A %a %B %b %j %u %G-W%V') }}", "Monday Mon March Mar 068 1 2026-W11"),
        ("{{ nominal|date('%I %p %y 100%%') }}", "12 AM 26 100%"),
        ("since {{ previous_nominal }}.", "since ."),
        ("since {{ previous_nominal | date('%Y') }}.", "since ."),
        ('{{ "{{" }} {{ \'a "}}"\' }}', '{{ a "}}"'),
        ("{{ inputs.topic }}!", "tea {{ nominal }}!"),
        ("{{ inputs.n }}/{{ inputs.none }}/{{ inputs.yes }}", "3//true"),
        ("{{ inputs.rows }} {{ inputs.rows.0.a }} {{ inputs.rows.1 }}", '[{"a":1},"ü"] 1 ü'),
        ("{{ run_id }} of {{ namespace }}", "{{ run_id }} of billing"),
    ],
)  # fmt: skip
def test_a_text_is_rendered(template: str, expected: str) -> None:
    assert Rendering(Facts()).text(template) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ inputs.n }}", 3),
        ("{{ inputs.rows }}", [{"a": 1}, "ü"]),
        ("{{ inputs.none }}", None),
        ("{{ inputs.topic }}", "tea {{ nominal }}"),
        (" {{ inputs.n }}", " 3"),
        ('{{ "{{" }}', "{{"),
        ({"{{ nominal }}": ["{{ inputs.n }}", 7, None]}, {"{{ nominal }}": [3, 7, None]}),
        ({"auth": {"$secret": "{{ inputs.topic }}"}}, {"auth": {"$secret": "{{ inputs.topic }}"}}),
        ([{"$from": "/results/x", "default": "{{ due }}"}], [{"$from": "/results/x", "default": "{{ due }}"}]),
    ],
)  # fmt: skip
def test_a_text_of_one_expression_keeps_the_type_and_references_stay(template: Any, expected: Any) -> None:
    assert rendered(template) == expected


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("a\nb {{ nominal", "line 2, column 3.*never closed"),
        ("{{ }}", "line 1, column 1.*is not an expression"),
        ("{{ a b }}", "is not an expression"),
        ("{{ inputs. }}", "is not an expression"),
        ("{{ 1 + 1 }}", "is not an expression"),
        ("{{ inputs['a'] }}", "is not an expression"),
        ("{{ nominal | upper }}", "unknown filter 'upper'"),
        ("{{ nominal | date }}", "needs a format"),
        ("{{ nominal | date('%Q') }}", "unknown directive '%Q'"),
        ("{{ nominal | date('50%') }}", "unknown directive '%'"),
        ("{{ now }}", "unknown name 'now'; allowed: nominal"),
        ("{{ results.a }}", "unknown name 'results'"),
        ("{{ nominal.year }}", "nominal has no fields"),
        ("{{ namespace | date('%Y') }}", "date formats only times"),
        ("{{ inputs.a }}" * (MAX_EXPRESSIONS + 1), f"more than {MAX_EXPRESSIONS} expressions"),
    ],
)
def test_a_wrong_template_is_refused_when_it_is_written(template: str, why: str) -> None:
    def check() -> None:
        for expression in expressions_of(template):
            check_names(expression)

    with pytest.raises(TemplateError, match=why):
        check()


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ inputs.other }}", "inputs.other does not exist"),
        ("{{ inputs.rows.2 }}", "inputs.rows.2 does not exist"),
        ("{{ inputs.rows.-1 }}", "inputs.rows.-1 does not exist"),
        ("{{ inputs.topic.x }}", "inputs.topic.x does not exist"),
        ("{{ inputs.token }}", "templates cannot read"),
        ("{{ inputs.deep }}", "templates cannot read"),
        ("{{ inputs }}", "templates cannot read"),
        ("{{ due }}", "due is not here"),
    ],
)
def test_a_value_that_cannot_be_rendered_is_named_with_its_path(template: str, why: str) -> None:
    with pytest.raises(TemplateError, match=why) as wrong:
        Rendering(Facts()).json({"a": [template]}, "input")
    assert wrong.value.field == "input.a.0"


def test_the_rendered_texts_of_a_run_are_bounded_together() -> None:
    half = MAX_RENDERED_BYTES // 2 - 1
    rendering = Rendering(Facts())
    assert len(rendering.text("x" * half + "{{ inputs.n }}")) == half + 1
    with pytest.raises(TemplateError, match=f"exceed {MAX_RENDERED_BYTES} bytes"):
        rendering.json(["{{ inputs.n }}" + "ü" * (half // 2 + 1)])
    with pytest.raises(TemplateError, match="exceed"):
        rendered(["{{ inputs.rows }}" + "y" * half] * 3)


@given(st.text(alphabet="{}\" '.|ab(%)\n-", max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        pieces = parse(text)
    except TemplateError:
        assert "{{" in text
        return
    assert all(piece for piece in pieces if isinstance(piece, str) and "{{" not in text)


@given(
    st.integers(min_value=0, max_value=4_000_000_000),
    st.sampled_from(["UTC", "Europe/Istanbul", "America/New_York", "Asia/Kolkata", "Pacific/Apia"]),
)
def test_dates_are_those_of_strftime_in_english(second: int, zone: str) -> None:
    form = " ".join(f"%{each}" for each in DIRECTIVES)
    local = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)).astimezone(ZoneInfo(zone))
    assert format_date(second * 1_000_000, form, load_zone(zone)) == local.strftime(form)
