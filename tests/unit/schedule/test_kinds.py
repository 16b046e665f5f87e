"""What a kind declares is what its actions are held to, and it fits beside the shipped kinds or is refused."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from horarium.core.document.definition import OTHER_TIMEOUT_SECONDS, Action
from horarium.core.document.document import UpdateMode, from_canonical, parse_definition, run_part_of, to_document
from horarium.core.document.field import Field, text_field, whole_field
from horarium.core.document.planning import compile_planning, planning_text
from horarium.core.document.reader import SHIPPED, Kind, Kinds, schema_of
from horarium.core.policy.queue import PolicyError, shown
from horarium.errors import InvalidDefinition, KindNotAvailable

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


@pytest.mark.parametrize("how", list(UpdateMode), ids=str)
def test_it_can_be_changed(how: UpdateMode) -> None:
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
        lambda: Kind("echo", timeout_seconds=1.5),  # type: ignore[arg-type]  # foreign code is not typed
        lambda: Kind("echo", {"text": Field("", {"type": object()})}),
        lambda: Kind("echo", {"text": Field("", {"default": {1}})}),
        lambda: Kind("echo", {"text": Field(object(), {})}),  # type: ignore[arg-type]  # foreign code is not typed
        lambda: Kind("echo", {"text": Field("", {}, same_as="word")}),
        lambda: Kinds([Kind("echo", {"queue": text_field("")})]),
        lambda: SHIPPED.extended([Kind("echo", {"arguments": text_field("")})]),
    ],
    ids=[
        "capital",
        "hyphen",
        "colon",
        "empty",
        "required",
        "names",
        "time",
        "part of a second",
        "schema",
        "default",
        "says",
        "same as",
        "common field",
        "other name of one",
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(declared: Any) -> None:
    with pytest.raises(ValueError, match=r"kind|timeout"):
        declared()


# A kind whose package is gone


STORED = parse({"action": {"text": "a", "name": "bob", "input": {"b": 1}, "queue": "q"}, "note": "n"})


@pytest.mark.parametrize(
    ("change", "how"),
    [
        ({"note": "other"}, UpdateMode.MERGE),
        ({"priority": 5}, UpdateMode.MERGE),
        ({"spec": {"cron_expressions": ["0 3 * * *"]}}, UpdateMode.PARTS),
        (to_document(STORED), UpdateMode.MERGE),
        (to_document(STORED), UpdateMode.PARTS),
        (to_document(STORED), UpdateMode.WHOLE),
        ({"text": "a"}, UpdateMode.PARTS),
    ],
    ids=["note", "priority", "spec", "merge", "parts", "whole", "flat"],
)
def test_an_action_that_does_not_change_stays_though_nobody_declares_its_kind(
    change: dict[str, Any], how: UpdateMode
) -> None:
    assert parse_definition(change, now=NOW, base=STORED, update=how).definition.action == STORED.action


@pytest.mark.parametrize(
    "action",
    [{"text": "b"}, {"kind": "echo", "name": None}, {"queue": "other"}, {"input": {"b": 2}}, {"kind": "smoke"}],
    ids=str,
)
def test_it_can_neither_be_changed_nor_made_one_of_another_unknown_kind(action: dict[str, Any]) -> None:
    with pytest.raises(KindNotAvailable, match="workflow, prompt, http, celery, python, command, pull, not '"):
        parse_definition({"action": action}, now=NOW, base=STORED)


def test_it_can_become_one_of_a_known_kind_when_its_fields_are_cleared() -> None:
    change = {"action": {"kind": "pull", "workflow_type": "w", "text": None, "times": None, "name": None}}
    assert parse_definition(change, now=NOW, base=STORED).definition.action.target == {"workflow_type": "w"}
    del change["action"]["text"]
    with pytest.raises(InvalidDefinition, match="belongs to an action of kind echo, not pull; null clears it"):
        parse_definition(change, now=NOW, base=STORED)


def test_its_target_and_time_stay_as_they_were_planned() -> None:
    before = compile_planning(planning_text(STORED, needs_approval=False, kinds=KINDS))
    edited = replace(STORED, priority=5)
    after = compile_planning(planning_text(edited, needs_approval=False, kinds=SHIPPED, before=before))
    assert (after.priority, after.target, after.timeout_seconds) == (5, "echo:bob", 7)


def test_a_damaged_row_of_no_possible_kind_is_refused_and_nothing_else() -> None:
    for damaged in (Action("E cho", {"text": "a"}), Action("echo", {"arguments": "a"})):
        with pytest.raises(KindNotAvailable):
            parse_definition({"priority": 5}, now=NOW, base=replace(STORED, action=damaged))


# Code of other packages


def held(check: Any, value: object = "x", **more: Any) -> Any:
    kinds = SHIPPED.extended([Kind("odd", {"word": Field("A word.", {}, check, **more)}, ("word",))])
    return parse({"action": {"kind": "odd", "word": value}}, kinds=kinds).action.target


@pytest.mark.parametrize("value", ["hello", 5, False, [1, None], {"a": {"b": []}}], ids=str)
def test_a_field_without_a_check_keeps_any_json(value: object) -> None:
    assert held(None, value) == {"word": value}


def raising(error: Exception) -> Any:
    def check(_field: str, _value: object) -> object:
        raise error

    return check


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (raising(KeyError("x")), "the check of kind odd failed: KeyError: 'x'"),
        (raising(Mute()), "the check of kind odd failed: Mute"),
        (raising(PolicyError("word", "must be\x00 good")), r"must be\x00 good"),
        (raising(PolicyError("word", 5)), "int"),  # type: ignore[arg-type]  # foreign code is not typed
        (lambda: None, "the check of kind odd failed: TypeError: "),
        (lambda _field, _value: object(), "the check of kind odd failed: it returned a object, which is not JSON"),
        (lambda _field, _value: {1, 2}, "the check of kind odd failed: it returned a set, which is not JSON"),
        (lambda _field, _value: float("nan"), "the check of kind odd failed: it returned a float, which is not JSON"),
        (lambda _field, _value: "a\x00", "the check of kind odd failed: it returned a str, which is not JSON"),
    ],
    ids=["raises", "mute", "text", "no text", "arguments", "object", "set", "nan", "nul"],
)
def test_a_check_that_fails_refuses_its_field(check: Any, text: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        held(check)
    [(path, [said])] = refused.value.errors.items()
    assert (path, said[: len(text)]) == ("action.word", text)


def test_what_a_failed_check_says_is_bounded() -> None:
    for error in (KeyError("x" * 9_000), PolicyError("word", "\x00" * 9_000)):
        with pytest.raises(InvalidDefinition) as refused:
            held(raising(error))
        assert len(refused.value.errors["action.word"][0]) == 300


def test_a_spelling_and_a_check_of_the_input_are_held_too() -> None:
    with pytest.raises(InvalidDefinition, match="the check of kind odd failed: ZeroDivisionError"):
        held(None, spelled=lambda _value: 1 // 0)
    kinds = SHIPPED.extended([Kind("odd", check_input=lambda _field, _value: object())])
    with pytest.raises(InvalidDefinition, match="the check of kind odd failed"):
        parse({"action": {"kind": "odd", "input": 5}}, kinds=kinds)


def test_of_what_a_check_made_the_plain_value_is_kept() -> None:
    assert held(lambda _field, _value: MappingProxyType({"a": (1, 2)})) == {"word": {"a": [1, 2]}}


@pytest.mark.parametrize("name", [raising(KeyError("x")), lambda *_: 5, lambda *_: "a\x00"], ids=["raises", "5", "nul"])
def test_a_target_that_cannot_be_named_is_its_kind(name: Any) -> None:
    assert SHIPPED.extended([Kind("odd", target=name)]).target_of(Action("odd")) == "odd:"


def test_none_of_the_shipped_kinds_is_replaced() -> None:
    assert SHIPPED.extended([Kind("http", {"text": text_field("")})]) is SHIPPED
