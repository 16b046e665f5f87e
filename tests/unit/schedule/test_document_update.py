"""A change to a definition merges, replaces parts, or replaces all; what it does not name stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from horarium.core.document.definition import Definition
from horarium.core.document.document import (
    Defaults,
    ParsedDefinition,
    UpdateMode,
    changed_fields,
    merge_patch,
    parse_definition,
    replace_parts,
    spec_equal,
    to_document,
)
from horarium.core.policy.queue import CatchupPolicy, OverlapPolicy
from horarium.errors import InvalidDefinition
from horarium.instant import from_rfc3339

NOW = from_rfc3339("2026-01-01T00:00:00Z")
BASE: dict[str, Any] = {
    "schedule_id": "s",
    "namespace": "billing",
    "note": "old",
    "labels": {"team": "a", "tier": "1"},
    "memo": {"origin": {"by": "x", "at": "y"}},
    "spec": {
        "cron_expressions": ["0 2 * * *"],
        "intervals": [{"every": "PT6H"}],
        "timezone": "America/Chicago",
        "jitter_seconds": 30,
    },
    "action": {"kind": "workflow", "workflow_type": "w", "input": {"a": 1}, "queue": "q"},
    "budget": {"spending_limit_credits": 5, "max_daily_runs": 2},
    "overlap_policy": "buffer_all",
    "max_buffered": 4,
    "catchup_policy": "fire_once",
    "retry_policy": {
        "max_retries": 5,
        "backoff_ms": 100,
        "max_backoff_ms": 60_000,
        "retry_on": ["timeout"],
    },
    "max_runs": 9,
}


def base() -> Definition:
    return parse_definition(BASE, now=NOW).definition


def change(patch: object, update: UpdateMode = UpdateMode.MERGE, **how: Any) -> ParsedDefinition:
    return parse_definition(patch, now=NOW, base=base(), update=update, **how)


def without(document: dict[str, Any], *paths: str) -> dict[str, Any]:
    copied = {key: dict(value) if isinstance(value, dict) else value for key, value in document.items()}
    for path in paths:
        part, _, key = path.partition(".")
        if key:
            del copied[part][key]
        else:
            del copied[part]
    return copied


def replaced(part: str, **values: Any) -> dict[str, Any]:
    return BASE | {part: BASE[part] | values}


def test_the_base_document_is_canonical() -> None:
    assert to_document(base()) == BASE


@pytest.mark.parametrize("update", [UpdateMode.MERGE, UpdateMode.PARTS])
def test_an_empty_change_changes_nothing(update: UpdateMode) -> None:
    assert change({}, update).definition == base()
    assert change([], update).definition == base()


MERGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a field": ({"note": "new"}, BASE | {"note": "new"}),
    "a field under another name": ({"notes": "new"}, BASE | {"note": "new"}),
    "null clears": ({"note": None, "maxRuns": None}, without(BASE, "note", "max_runs")),
    "null clears inside": ({"spec": {"timezone": None}}, without(BASE, "spec.timezone")),
    "null clears a flat name": ({"jitter_ms": None}, without(BASE, "spec.jitter_seconds")),
    "null clears a whole policy": ({"retry_policy": None}, without(BASE, "retry_policy")),
    "null of a queue policy clears its fields": (
        {"queue_policy": None},
        without(BASE, "max_buffered") | {"overlap_policy": "skip"},
    ),
    "objects are merged": ({"labels": {"tier": None, "new": "b"}}, BASE | {"labels": {"team": "a", "new": "b"}}),
    "and merged deeply": ({"memo": {"origin": {"at": None}}}, BASE | {"memo": {"origin": {"by": "x"}}}),
    "a null in a new object is no value": (
        {"search_attributes": {"a": None, "b": 1}},
        BASE | {"search_attributes": {"b": 1}},
    ),
    "arrays are replaced": (
        {"spec": {"intervals": [{"every": "PT1H"}]}},
        replaced("spec", intervals=[{"every": "PT1H"}]),
    ),
    "a flat cron keeps the intervals": ({"cron_expr": "0 3 * * *"}, replaced("spec", cron_expressions=["0 3 * * *"])),
    "inputs are merged": ({"action": {"input": {"b": 2}}}, replaced("action", input={"a": 1, "b": 2})),
    "but an envelope is one value": (
        {"action": {"input": {"codec": "avro", "blob": "AA=="}}},
        replaced("action", input={"codec": "avro", "blob": "AA=="}),
    ),
    "an array replaces an object": ({"arguments": [1]}, replaced("action", input=[1])),
    "policies are merged key by key": ({"retryPolicy": {"maxRetries": 0}}, replaced("retry_policy", max_retries=0)),
    "a queue policy is its fields": ({"queue_policy": {"mode": "parallel"}}, BASE | {"overlap_policy": "allow_all"}),
    "a value beats a null": (
        {"overlap_policy": "allow", "queue_policy": {"mode": None}},
        BASE | {"overlap_policy": "allow_all"},
    ),
    "names may be repeated": ({"schedule_id": "s", "namespace": "billing"}, BASE),
    "names are not cleared": ({"schedule_id": None, "namespace": None}, BASE),
}


@pytest.mark.parametrize(("patch", "expected"), MERGES.values(), ids=MERGES)
def test_a_merge_patch(patch: dict[str, Any], expected: dict[str, Any]) -> None:
    assert to_document(change(patch).definition) == expected


PUTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a spec is replaced whole, but jitter is no part of it": (
        {"spec": {"cron_expressions": ["0 3 * * *"]}},
        BASE | {"spec": {"cron_expressions": ["0 3 * * *"], "jitter_seconds": 30}},
    ),
    "jitter beside the spec": (
        {"spec": {"intervals": [{"every": "PT1H"}]}, "jitter_seconds": 5},
        BASE | {"spec": {"intervals": [{"every": "PT1H"}], "jitter_seconds": 5}},
    ),
    "a flat name replaces only itself": ({"cron_expr": "0 3 * * *"}, replaced("spec", cron_expressions=["0 3 * * *"])),
    "an action is merged key by key": ({"action": {"task_queue": "r"}}, replaced("action", queue="r")),
    "an input is replaced": ({"action": {"input": {"b": 2}}}, replaced("action", input={"b": 2})),
    "a memo is replaced": ({"memo": {"new": 1}}, BASE | {"memo": {"new": 1}}),
    "an empty memo clears": ({"memo": {}, "labels": []}, without(BASE, "memo", "labels")),
    "a null memo clears": ({"memo": None}, without(BASE, "memo")),
    "any other null says nothing": ({"note": None, "max_runs": None, "spec": None, "action": None}, BASE),
    "a policy is replaced": ({"budget": {"max_daily_runs": 1}}, BASE | {"budget": {"max_daily_runs": 1}}),
    "a queue policy is its fields": ({"queue_policy": {"priority": 5}}, BASE | {"priority": 5}),
    "an assignee is replaced": ({"assignee": {"id": "a1"}}, BASE | {"assignee_type": "agent", "assignee_id": "a1"}),
}


def ordered(document: dict[str, Any]) -> dict[str, Any]:
    return to_document(parse_definition(document, now=NOW).definition)


@pytest.mark.parametrize(("patch", "expected"), PUTS.values(), ids=PUTS)
def test_parts_that_are_replaced(patch: dict[str, Any], expected: dict[str, Any]) -> None:
    assert to_document(change(patch, UpdateMode.PARTS).definition) == ordered(expected)


@pytest.mark.parametrize(("patch", "expected"), MERGES.values(), ids=MERGES)
def test_merge_patch_gives_the_document_that_the_update_reads(patch: dict[str, Any], expected: dict[str, Any]) -> None:
    assert ordered({"namespace": "billing", "schedule_id": "s"} | merge_patch(BASE, patch)) == expected


@pytest.mark.parametrize(("patch", "expected"), PUTS.values(), ids=PUTS)
def test_replace_parts_gives_the_document_that_the_update_reads(
    patch: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert ordered(replace_parts(BASE, patch)) == ordered(expected)


def test_a_patch_may_pause_and_the_definition_does_not_know() -> None:
    parsed = change({"enabled": False})
    assert (parsed.paused, parsed.definition) == (True, base())
    assert change({"note": "new"}).paused is None


def test_a_whole_document_keeps_nothing_of_the_base_but_its_names() -> None:
    definition = change({"cron_expr": "0 3 * * *", "prompt": "x"}, UpdateMode.WHOLE).definition
    assert to_document(definition) == {
        "schedule_id": "s",
        "namespace": "billing",
        "spec": {"cron_expressions": ["0 3 * * *"]},
        "action": {"kind": "prompt", "prompt": "x"},
        "overlap_policy": "skip",
        "catchup_policy": "fire_once",
    }


@pytest.mark.parametrize("update", UpdateMode)
@pytest.mark.parametrize("patch", [{"schedule_id": "t"}, {"namespace": "default"}], ids=str)
def test_the_names_of_a_schedule_cannot_change(patch: dict[str, Any], update: UpdateMode) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        change(patch | {"cron_expr": "0 3 * * *", "workflow_type": "w"}, update)
    assert {path: "cannot be changed" in texts[0] for path, texts in refused.value.errors.items()} == {
        next(iter(patch)): True
    }


def test_a_problem_in_a_patch_is_under_the_path_of_the_patch() -> None:
    with pytest.raises(InvalidDefinition) as refused:
        change({"cronExpr": "x", "queue_policy": {"maxConcurrency": 0}, "bogus": 1})
    assert set(refused.value.errors) == {"cronExpr", "queue_policy.maxConcurrency", "bogus"}


def test_another_kind_of_action_must_clear_the_fields_of_the_old_one() -> None:
    with pytest.raises(InvalidDefinition) as refused:
        change({"action": {"kind": "prompt", "prompt": "x"}})
    assert set(refused.value.errors) == {"action.workflow_type"}
    cleared = change({"action": {"kind": "prompt", "prompt": "x", "workflow_type": None}}).definition
    assert cleared.action.target == {"prompt": "x"}


def test_patches_cannot_grow_a_document_beyond_its_bound() -> None:
    grown = base()
    for n in range(10):
        grown = parse_definition({"inputs": {f"k{n}": "x" * 100_000}}, now=NOW, base=grown).definition
    with pytest.raises(InvalidDefinition) as refused:
        parse_definition({"inputs": {"more": "x" * 100_000}}, now=NOW, base=grown)
    assert list(refused.value.errors) == ["document"]


# ── operators' defaults ───────────────────────────────────────────────────────────────────────────

OTHERS = Defaults(OverlapPolicy.ALLOW_ALL, CatchupPolicy.SKIP, jitter_ms=7_000, misfire_grace_seconds=5)


def test_new_defaults_do_not_change_an_old_schedule() -> None:
    assert change({"note": "old"}, defaults=OTHERS).definition == base()


def test_what_a_patch_clears_takes_the_default_of_today() -> None:
    cleared = change({"jitter_ms": None, "overlap_policy": None, "misfire_grace_seconds": None}, defaults=OTHERS)
    definition = cleared.definition
    assert definition.spec.jitter_ms == 7_000
    assert definition.overlap.policy is OverlapPolicy.ALLOW_ALL
    assert definition.catchup.misfire_grace_seconds == 5
    assert definition.catchup.policy is CatchupPolicy.FIRE_ONCE


# ── a past spec ───────────────────────────────────────────────────────────────────────────────────

LATER = from_rfc3339("2030-01-01T00:00:00Z")
ONCE = {"schedule_id": "s", "at": ["2026-06-01T00:00:00Z"], "prompt": "x"}


@pytest.mark.parametrize(
    ("patch", "update"),
    [({"note": "new"}, UpdateMode.MERGE), ({"note": "new"}, UpdateMode.PARTS), (ONCE, UpdateMode.WHOLE)],
    ids=["merge", "parts", "whole"],
)
def test_a_finished_schedule_can_be_edited_as_long_as_its_spec_stays(patch: dict[str, Any], update: UpdateMode) -> None:
    finished = parse_definition(ONCE, now=NOW).definition
    assert parse_definition(patch, now=LATER, base=finished, update=update).definition.spec == finished.spec


def test_a_finished_schedule_cannot_get_another_past() -> None:
    finished = parse_definition(ONCE, now=NOW).definition
    with pytest.raises(InvalidDefinition) as refused:
        parse_definition({"at": ["2026-07-01T00:00:00Z"]}, now=LATER, base=finished)
    assert list(refused.value.errors) == ["at"]


# ── what changed ──────────────────────────────────────────────────────────────────────────────────

CHANGES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "nothing": ({}, ()),
    "two, in canonical order": ({"max_runs": 1, "note": "new"}, ("note", "max_runs")),
    "spec and action are one name each": ({"timezone": "UTC", "queue": "r"}, ("spec", "action")),
    "something cleared": ({"labels": None}, ("labels",)),
    "a policy": ({"spending_limit_credits": 6}, ("budget",)),
    "true is not 1": ({"inputs": {"a": True}}, ("action",)),
    "1.0 is 1": ({"inputs": {"a": 1.0}}, ()),
}


@pytest.mark.parametrize(("patch", "names"), CHANGES.values(), ids=CHANGES)
def test_changed_fields(patch: dict[str, Any], names: tuple[str, ...]) -> None:
    assert changed_fields(base(), change(patch).definition) == names


SPECS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "the same text": ({"cron_expr": "0 2 * * *"}, {"cron_expr": "0 2 * * *"}, True),
    "blanks": ({"cron_expr": "0 2 * * *"}, {"cron_expr": "0  2 * * *"}, True),
    "another spelling": ({"cron_expr": "0 2 * * MON"}, {"cron_expr": "0 2 * * 1"}, True),
    "another order": (
        {"cron_expressions": ["0 2 * * *", "0 3 * * *"]},
        {"cron_expressions": ["0 3 * * *", "0 2 * * *"]},
        True,
    ),
    "UTC is the default": ({"cron_expr": "0 2 * * *"}, {"cron_expr": "0 2 * * *", "timezone": "UTC"}, True),
    "a zone in the expression": (
        {"cron_expr": "TZ=Asia/Tokyo 0 2 * * *"},
        {"cron_expr": "0 2 * * *", "timezone": "Asia/Tokyo"},
        True,
    ),
    "another hour": ({"cron_expr": "0 2 * * *"}, {"cron_expr": "0 3 * * *"}, False),
    "another zone": ({"cron_expr": "0 2 * * *"}, {"cron_expr": "0 2 * * *", "timezone": "Asia/Tokyo"}, False),
    "another window": (
        {"cron_expr": "0 2 * * *"},
        {"cron_expr": "0 2 * * *", "start_at": "2026-05-01T00:00:00Z"},
        False,
    ),
    "another jitter": ({"cron_expr": "0 2 * * *"}, {"cron_expr": "0 2 * * *", "jitter_ms": 1}, False),
    "another rule for repeated hours": (
        {"cron_expr": "0 2 * * *"},
        {"cron_expr": "0 2 * * *", "dst_fold": "both"},
        False,
    ),
}


@pytest.mark.parametrize(("one", "other", "equal"), SPECS.values(), ids=SPECS)
def test_spec_equal_asks_for_the_meaning(one: dict[str, Any], other: dict[str, Any], equal: bool) -> None:
    def read(spec: dict[str, Any]) -> Definition:
        return parse_definition({"schedule_id": "s", "prompt": "x", **spec}, now=NOW).definition

    assert spec_equal(read(one), read(other)) is equal
    assert spec_equal(read(other), read(one)) is equal


def test_a_spec_that_no_longer_compiles_has_changed() -> None:
    renamed = replace(base(), spec=replace(base().spec, timezone="Europe/Atlantis"))
    assert spec_equal(renamed, base()) is False
