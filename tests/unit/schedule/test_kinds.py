"""What a kind declares is what its actions are held to, and it fits beside the shipped kinds or is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from horarium.errors import InvalidDefinition, KindNotAvailable
from horarium.policy.names import PolicyError, shown
from horarium.schedule.definition import OTHER_TIMEOUT_SECONDS, Action
from horarium.schedule.document import Update, from_canonical, parse_definition, run_part_of, to_document
from horarium.schedule.field import Field, text_field, whole_field
from horarium.schedule.kinds import SHIPPED, Kind, Kinds
from horarium.schedule.planning import compile_planning, planning_text
from horarium.schedule.schema import schema_of

NOW = 1_770_000_000_000_000
CRON = {"schedule_id": "s", "cron_expr": "0 2 * * *"}


def only_objects(field: str, value: object) -> object:
    if not isinstance(value, dict):
        raise PolicyError(field, f"must be an object, not {shown(value)}")
    return value


ECHO = Kind(
    "echo",
    {
        "text": text_field("What to say."),
        "times": Field("How often.", {"type": "integer", "default": 1}, whole_field("", least=1).check),
        "name": text_field("Who says it."),
    },
    ("text",),
    lambda action, _assignee: str(action.target.get("name", "")),
    timeout_seconds=7,
    check_input=only_objects,
)
KINDS = SHIPPED.extended([ECHO])


def parse(document: dict[str, Any], **more: Any) -> Any:
    return parse_definition({**CRON, **document}, now=NOW, **{"kinds": KINDS, **more}).definition


def test_its_fields_are_read_with_their_defaults() -> None:
    assert parse({"action": {"kind": "echo", "text": "a"}}).action == Action("echo", {"text": "a", "times": 1})
    assert parse({"text": "a", "times": 3}).action.target == {"text": "a", "times": 3}


def test_a_name_that_the_top_has_taken_is_read_in_the_action_only() -> None:
    definition = parse({"name": "of the schedule", "action": {"text": "a", "name": "of the action"}})
    assert (definition.name, definition.action.target["name"]) == ("of the schedule", "of the action")


@pytest.mark.parametrize(
    ("action", "path"),
    [
        ({"text": 5}, "action.text"),
        ({"text": "a", "times": 0}, "action.times"),
        ({"kind": "echo", "times": 2}, "action.text"),
        ({"kind": "pull", "workflow_type": "w", "queue": "q", "text": "a"}, "action.text"),
        ({"text": "a", "input": []}, "action.input"),
        ({"text": "a", "url": "http://a"}, "action"),
    ],
    ids=str,
)
def test_its_checks_hold(action: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        parse({"action": action})
    assert list(refused.value.errors) == [path]
    assert not isinstance(refused.value, KindNotAvailable)


def test_its_target_and_time_are_planned() -> None:
    definition = parse({"action": {"text": "a", "name": "bob"}})
    planning = compile_planning(planning_text(definition, needs_approval=False, kinds=KINDS))
    assert (planning.kind, planning.target, planning.timeout_seconds) == ("echo", "echo:bob", 7)


def test_the_schema_shows_it() -> None:
    action = schema_of(KINDS)["properties"]["action"]["properties"]
    assert action["kind"]["enum"] == [*SHIPPED, "echo"]
    assert action["times"] == {"type": "integer", "default": 1, "description": "How often."}
    assert schema_of()["properties"]["action"]["properties"]["kind"]["enum"] == list(SHIPPED)


def test_a_kind_that_nobody_declares_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(KindNotAvailable, match="workflow, prompt, http, celery, python, command, pull, not 'echo'"):
        parse({"action": {"kind": "echo", "text": "a"}}, kinds=SHIPPED)


def test_it_is_refused_together_with_all_else_that_is_wrong() -> None:
    with pytest.raises(KindNotAvailable) as refused:
        parse({"action": {"kind": "smoke"}, "max_runs": 0})
    assert refused.value.errors.keys() == {"action.kind", "max_runs"}


def test_a_kind_that_is_no_text_is_plainly_wrong() -> None:
    with pytest.raises(InvalidDefinition) as refused:
        parse({"action": {"kind": 5}})
    assert not isinstance(refused.value, KindNotAvailable)


def test_what_was_written_is_read_though_nobody_declares_it_any_more() -> None:
    definition = parse({"action": {"text": "a", "name": "bob", "input": {"b": 1}, "queue": "q"}})
    document = to_document(definition)
    assert from_canonical(document) == definition
    assert run_part_of(document).action == definition.action
    assert SHIPPED.timeout_of(definition.action) == OTHER_TIMEOUT_SECONDS
    assert SHIPPED.target_of(definition.action) == "echo:"


@pytest.mark.parametrize("how", list(Update), ids=str)
def test_it_can_be_changed(how: Update) -> None:
    base = parse({"action": {"text": "a", "times": 3}})
    changed = parse({"action": {"kind": "echo", "text": "b", "times": 3}}, base=base, update=how)
    assert changed == replace(base, action=Action("echo", {"text": "b", "times": 3}))


@pytest.mark.parametrize(
    "declared",
    [
        lambda: Kind("Echo"),
        lambda: Kind("e-cho"),
        lambda: Kind("e:cho"),
        lambda: Kind(""),
        lambda: Kind("echo", {}, ("text",)),
        lambda: Kind("echo", names="text"),
        lambda: Kind("echo", timeout_seconds=0),
        lambda: Kinds([Kind("echo", {"queue": text_field("")})]),
        lambda: SHIPPED.extended([Kind("echo", {"arguments": text_field("")})]),
    ],
    ids=["capital", "hyphen", "colon", "empty", "required", "names", "time", "common field", "other name of one"],
)
def test_a_declaration_that_does_not_fit_is_refused(declared: Any) -> None:
    with pytest.raises(ValueError, match=r"kind|timeout"):
        declared()


def test_none_of_the_shipped_kinds_is_replaced() -> None:
    assert SHIPPED.extended([Kind("http", {"text": text_field("")})]) is SHIPPED
