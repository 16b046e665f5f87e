"""Where a definition may name a secret, and what it stands for."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.document.checks import MAX_NAMES, MAX_REFERENCES, SECRET_KINDS, resolved_value, secret_names
from horarium.core.document.document import UpdateMode, parse_definition
from horarium.core.document.reader import SHIPPED
from horarium.errors import InvalidDefinition
from horarium.instant import from_rfc3339

NOW = from_rfc3339("2026-03-01T00:00:00Z")
NAMED = {"$secret": "mine"}
HTTP = {"url": "https://api.example.com/"}


def definition(action: dict[str, Any], **more: Any) -> Any:
    document = {"schedule_id": "a", "cron_expressions": ["0 * * * *"], "action": action, **more}
    return parse_definition(document, now=NOW).definition


def problems_of(action: dict[str, Any], **more: Any) -> dict[str, list[str]]:
    with pytest.raises(InvalidDefinition) as refused:
        definition(action, **more)
    return dict(refused.value.errors)


ALLOWED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "header": ({**HTTP, "headers": {"X-A": NAMED}}, {}),
    "input of http": ({**HTTP, "input": {"a": [1, {"b": NAMED}]}}, {}),
    "input of http by place": ({**HTTP, "input": [NAMED]}, {}),
    "input of a prompt": ({"prompt": "Summarise", "input": {"key": NAMED}}, {}),
    "input of celery": ({"kind": "celery", "task": "t", "input": {"key": NAMED}}, {}),
    "arguments of celery": ({"kind": "celery", "task": "t", "args": [1, [NAMED]], "kwargs": {"a": NAMED}}, {}),
    "rotation of http": (HTTP, {"inputs_rotation": [{"a": 1}, {"a": NAMED}]}),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_a_secret_may_be_named_where_its_value_goes_out_and_nowhere_else_is_kept(case: str) -> None:
    action, more = ALLOWED[case]
    assert secret_names(definition(action, **more)) == {"mine"}


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "action.input.a": ({"kind": "python", "task": "t", "input": {"a": NAMED}}, {}),
    "action.input.b": ({"command": "c", "input": {"b": NAMED}}, {}),
    "action.input.c": ({"kind": "pull", "workflow_type": "w", "queue": "q", "input": {"c": NAMED}}, {}),
    "action.input.d.0": ({"workflow_type": "w", "input": {"d": [NAMED]}}, {}),
    "inputs_rotation.0.a": ({"kind": "python", "task": "t"}, {"inputs_rotation": [{"a": NAMED}]}),
    "action.url": ({"url": NAMED}, {}),
    "name": (HTTP, {"name": NAMED}),
    "labels.team": (HTTP, {"labels": {"team": NAMED}}),
    "memo.deep.er": (HTTP, {"memo": {"deep": {"er": NAMED}}}),
    "search_attributes.a": (HTTP, {"search_attributes": {"a": NAMED}}),
    "pre_dispatch_condition./a.eq": (HTTP, {"pre_dispatch_condition": {"/a": {"eq": NAMED}}}),
}


@pytest.mark.parametrize("path", REFUSED)
def test_a_secret_named_elsewhere_is_refused_under_its_path(path: str) -> None:
    action, more = REFUSED[path]
    found = problems_of(action, **more)
    assert any("secret" in text for text in found[path]), found


@pytest.mark.parametrize(
    "malformed",
    [
        {"$secret": 3},
        {"$secret": None},
        {"$secret": ""},
        {"$secret": "a b"},
        {"$secret": "x", "default": 1},
        {"$secret": {}},
    ],
    ids=repr,
)
@pytest.mark.parametrize("place", ["action.input.a", "action.headers.X-A"])
def test_what_is_no_reference_is_refused(place: str, malformed: dict[str, Any]) -> None:
    at = {"action.input.a": {"input": {"a": malformed}}, "action.headers.X-A": {"headers": {"X-A": malformed}}}[place]
    assert place in problems_of({**HTTP, **at})


def test_an_input_names_a_bounded_number_of_secrets() -> None:
    assert definition({**HTTP, "input": [NAMED] * MAX_REFERENCES})
    assert list(problems_of({**HTTP, "input": [NAMED] * 5_000})) == [f"action.input.{MAX_REFERENCES}"]
    many = [{"$secret": f"s{number}"} for number in range(5_000)]
    assert list(problems_of({**HTTP, "input": many})) == [f"action.input.{MAX_NAMES}"]


def test_an_encoded_input_is_data() -> None:
    """The name is inside the text, and nobody looks there."""
    assert not secret_names(definition({**HTTP, "input": {"codec": "json", "blob": '{"$secret": "mine"}'}}))


def test_the_kinds_that_take_secrets_are_kinds() -> None:
    assert SHIPPED.keys() >= SECRET_KINDS


def test_a_patch_replaces_a_reference_whole() -> None:
    base = definition({**HTTP, "headers": {"X-A": NAMED}, "input": {"a": {"b": 1}}})
    patch = {"action": {"headers": {"X-A": {"$secret": "other"}}, "input": {"a": {"$secret": "third"}}}}
    changed = parse_definition(patch, now=NOW, base=base, update=UpdateMode.MERGE).definition
    assert changed.action.input == {"a": {"$secret": "third"}}
    assert secret_names(changed) == {"other", "third"}
    back = parse_definition({"action": {"input": {"a": {"c": 2}}}}, now=NOW, base=changed).definition
    assert back.action.input == {"a": {"c": 2}}


def test_resolving_leaves_what_it_does_not_know() -> None:
    given = {"a": NAMED, "b": [{"$secret": "other"}, 1, "mine"], "c": {"$secret": "mine", "x": 1}}
    assert resolved_value(given, {"mine": "v"}) == {**given, "a": "v"}
