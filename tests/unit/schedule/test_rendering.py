"""Templates of actions: what is checked when a schedule is written, and what its runs are given."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.document.canonical import to_document
from horarium.core.document.definition import Definition
from horarium.core.document.document import ParsedDefinition, changed_fields, from_canonical, parse_definition
from horarium.core.document.rendering import (
    RunFacts,
    ScheduleName,
    TemplateUse,
    literals_of,
    render,
    rendered_action,
    texts_of,
    use_of,
)
from horarium.errors import InvalidDefinition
from horarium.instant import from_rfc3339

NOW = from_rfc3339("2026-11-19T00:00:00Z")
NOMINAL = from_rfc3339("2026-12-01T02:00:00Z")
ENVELOPE = {"codec": "json", "blob": "{{ nominal }}"}


def parsed(**parts: Any) -> ParsedDefinition:
    return parse_definition({"schedule_id": "daily", "cron_expr": "0 2 * * *", "template": True, **parts}, now=NOW)


def errors(**parts: Any) -> dict[str, list[str]]:
    with pytest.raises(InvalidDefinition) as wrong:
        parsed(**parts)
    return dict(wrong.value.errors)


def facts(definition: Definition, **more: Any) -> RunFacts:
    spec = definition.spec.compile("daily")
    named = ScheduleName(definition.schedule_id, definition.name)
    return RunFacts(
        "default", "scheduled", NOMINAL, NOMINAL, spec, named, **{"run_id": "R1", "created_at": NOW, **more}
    )


def given_and_texts(definition: Definition, **more: Any) -> tuple[Any, Any]:
    rendered = render(definition, facts(definition), **more)
    return rendered.input and rendered.input[0], dict(rendered.texts)


def test_the_flag_is_a_part_of_the_definition() -> None:
    marked = parsed(prompt="on {{ nominal }}").definition
    plain = parsed(prompt="on {{ nominal }}", template=False).definition
    assert to_document(marked)["action"] == {"kind": "prompt", "prompt": "on {{ nominal }}", "template": True}
    assert "template" not in to_document(plain)["action"]  # type: ignore[operator]  # it is an object
    assert from_canonical(to_document(marked)) == marked
    assert changed_fields(plain, marked) == ("action",)


def test_the_prompt_reads_the_rendered_input() -> None:
    definition = parsed(
        name="Daily", timezone="Europe/Istanbul",
        prompt="{{ schedule_name }}: {{ inputs.day }}, {{ previous_nominal }}",
        inputs={"day": "{{ nominal | date('%d %H') }}", "n": 1},
    ).definition  # fmt: skip
    assert use_of(definition.action) is TemplateUse.REPLACES
    expected = {"day": "01 05", "n": 1}, {"prompt": "Daily: 01 05, 2026-11-30T23:00:00Z"}
    assert given_and_texts(definition) == expected


def test_given_values_replace_an_input_that_does_not_read_them() -> None:
    definition = parsed(
        prompt="{{ inputs.day }}", inputs={"day": "{{ nominal }}"}, inputs_rotation=[{"day": "{{ due }}"}, {"day": 2}]
    ).definition
    assert given_and_texts(definition, index=0) == (None, {"prompt": "{{ due }}"})
    assert given_and_texts(definition, index=3) == (None, {"prompt": "2"})
    assert given_and_texts(definition, given={"day": ["x"]}) == (None, {"prompt": '["x"]'})


def test_given_values_fill_in_an_input_that_reads_them() -> None:
    definition = parsed(
        url="https://a.example/",
        inputs={"title": "On {{ inputs.topic }}", "all": "{{ inputs }}", "at": "{{ nominal }}"},
        inputs_rotation=[{"topic": "tea"}, {"topic": "{{ nominal }}"}],
    ).definition  # fmt: skip
    assert use_of(definition.action) is TemplateUse.FILLS_IN
    at = "2026-12-01T02:00:00Z"
    first = {"title": "On tea", "all": {"topic": "tea"}, "at": at}
    second = {"title": "On {{ nominal }}", "all": {"topic": "{{ nominal }}"}, "at": at}
    third = {"title": "On jam", "all": {"topic": "jam"}, "at": at}
    assert [given_and_texts(definition, index=each)[0] for each in (0, 1)] == [first, second]
    assert given_and_texts(definition, index=0, given={"topic": "jam"})[0] == third


def test_arguments_of_a_celery_task_are_rendered() -> None:
    definition = parsed(
        kind="celery", task="t", kwargs={"day": "{{ nominal | date('%j') }}", "n": "{{ inputs.n }}"},
        args=["{{ inputs.n }}"], inputs_rotation=[{"n": 5}],
    ).definition  # fmt: skip
    assert given_and_texts(definition) == (None, {"args": [5], "kwargs": {"day": "335", "n": 5}})


def test_an_encoded_input_is_never_rendered_or_read() -> None:
    definition = parsed(workflow_type="w", inputs=ENVELOPE).definition
    assert given_and_texts(definition)[0] == ENVELOPE
    assert "encoded inputs" in errors(prompt="{{ inputs.codec }}", inputs=ENVELOPE)["prompt"][0]


def test_a_rendered_action_is_no_template_and_says_what_was_rendered() -> None:
    definition = parsed(prompt="{{ inputs.x }}", inputs={"x": "{{ nominal }}"}).definition
    kept = render(definition, facts(definition)).document()
    action = rendered_action(definition.action, kept)
    at = "2026-12-01T02:00:00Z"
    assert (action.template, action.target, action.input) == (False, {"prompt": at}, {"x": at})
    assert (texts_of(action), texts_of(definition.action)) == ({"prompt": at}, None)


def test_a_forecast_shows_what_is_not_known_yet_as_it_is_written() -> None:
    definition = parsed(prompt="{{ run_id }} {{ created_at | date('%Y') }} {{ nominal | date('%Y') }}").definition
    found = render(definition, facts(definition, run_id=None, created_at=None))
    assert found.texts == {"prompt": "{{ run_id }} {{ created_at | date('%Y') }} 2026"}


@pytest.mark.parametrize(
    ("parts", "path", "why"),
    [
        ({"prompt": "{{ foo }}"}, "prompt", "unknown name 'foo'"),
        ({"prompt": "{{ foo"}, "prompt", "never closed"),
        ({"prompt": "x", "inputs": {"a": ["{{ y }}"]}}, "inputs.a.0", "unknown name 'y'"),
        ({"kind": "celery", "task": "t", "kwargs": {"a": "{{ y }}"}}, "kwargs.a", "unknown name 'y'"),
        ({"prompt": "{{ inputs.x }}"}, "prompt", "no inputs_rotation"),
        ({"prompt": "{{ inputs.x }}", "inputs": {"y": 1}}, "prompt", "inputs.x does not exist"),
        ({"prompt": "{{ inputs.x }}", "inputs": {"x": " "}}, "prompt", "non-blank"),
        ({"url": "https://a.example/", "inputs": {"a": 1, "b": "{{ inputs.a }}"}}, "inputs.b", "no inputs_rotation"),
        ({"prompt": "{{ inputs.x }}", "inputs_rotation": [{"x": 1}, {"y": 1}]}, "inputs_rotation.1", "does not exist"),
        ({"prompt": "{{ inputs.x }}", "inputs": {"x": {"$secret": "s"}}}, "prompt", "templates cannot read"),
        ({"command": "c", "inputs": ["{{ inputs.n }}"], "inputs_rotation": [{"n": 1}]}, "inputs_rotation.0", "strings"),
        ({"kind": "celery", "task": "t", "kwargs": {}, "inputs": {"a": 1}}, "inputs", "conflicts with `kwargs`"),
        ({"prompt": "{{ nominal }}" * 201}, "prompt", "more than 200 expressions"),
        ({"prompt": "x", "inputs": ["{{ nominal }}"] * 201}, "template", "more than 200 expressions"),
        ({"prompt": "x", "inputs": [0] * 3_000, "inputs_rotation": [{}] * 100}, "template", "is too large"),
        # The longest day of the week counts, whichever comes first, in each zone.
        ({"prompt": "x" * 99_929 + "{{ nominal|date('%A%A%A%A%A%A%A%A') }}"}, "prompt", "exceed 100000 bytes"),
        ({"prompt": "x" * 99_929 + "{{ nominal|date('%A%A%A%A%A%A%A%A') }}", "timezone": "Pacific/Kiritimati"},
         "prompt", "exceed 100000 bytes"),
        ({"prompt": "x" * 99_929 + "{{ nominal|date('%A%A%A%A%A%A%A%A') }}", "timezone": "Etc/GMT+12"},
         "prompt", "exceed 100000 bytes"),
        # What each run keeps counts as a whole, literal parts included.
        ({"prompt": "x" * 50_000, "inputs": {"a": ["y" * 50_000]}}, "prompt", "exceed 100000 bytes"),
        ({"prompt": "x", "inputs": {"a": [0] * 19_000, "k" * 70_000: 1}}, "inputs", "exceed 100000 bytes"),
        ({"prompt": "x", "inputs": ["{{ nominal }}", "\u00fc" * 50_001]}, "inputs.1", "exceed 100000 bytes"),
        # The first occurrence has none before it.
        ({"prompt": "{{ previous_nominal }}"}, "prompt", "non-blank"),
        ({"prompt": "{{ inputs.x }}", "inputs": {"x": "{{ previous_nominal | date('%d') }}"}}, "prompt", "non-blank"),
    ],
)  # fmt: skip
def test_a_template_that_could_not_be_rendered_is_refused(parts: dict[str, Any], path: str, why: str) -> None:
    found = errors(**parts)
    assert list(found) == [path]
    assert why in found[path][0]


def test_literal_parts_are_the_same_in_every_rendering() -> None:
    inputs = {
        "a": [{"b": 1}, "{{ nominal }}"],
        "c": {"d": ["x", None, {"$secret": "s"}]},
        "e": [[], {}],
        "f": ["{{ due }}"],
    }
    definition = parsed(url="https://a.example/", inputs=inputs).definition
    literals = literals_of(definition.action)
    assert id(definition.action.input["e"]) in literals
    assert id(definition.action.input["c"]) not in literals  # it holds a reference
    assert given_and_texts(definition, literals=literals) == given_and_texts(definition)


@pytest.mark.parametrize("texts", [{"url": "https://evil.example/"}, {"prompt": "x"}, {"args": []}])
def test_texts_of_another_action_are_refused(texts: dict[str, Any]) -> None:
    definition = parsed(url="https://a.example/", inputs=["{{ nominal }}"]).definition
    with pytest.raises(ValueError, match="do not match its action"):
        rendered_action(definition.action, {"texts": texts})


def test_every_wrong_text_is_named() -> None:
    found = errors(prompt="{{ a }}", inputs={"x": "{{ b", "y": "{{ c }}"})
    assert set(found) == {"prompt", "inputs.x", "inputs.y"}


def test_texts_that_look_like_expressions_and_are_not_rendered_are_warned_about() -> None:
    [plain] = parsed(prompt="On {{ nominal }}", template=False).warnings
    assert plain == "prompt: {{ nominal }} is sent without rendering; set `template: true` to render it"
    [given] = parsed(url="https://a.example/", inputs=["{{ due }}"], template=False).warnings
    assert given == "inputs: {{ due }} is sent without rendering; set `template: true` to render it"
    [header] = parsed(url="https://a.example/", headers={"X-At": "{{ nominal }}"}).warnings
    assert header.endswith(
        "{{ nominal }} is sent without rendering; templates work only in the prompt, the input and arguments"
    )
    [entry] = parsed(prompt="{{ inputs.x }}", inputs_rotation=[{"x": "{{ due }}"}]).warnings
    assert entry == "inputs_rotation: {{ due }} is not rendered, because entries are values, not templates"
    assert not parsed(prompt="{{ other.engine | x }}", template=False).warnings
