"""What a bundle is, whose things are, and how two documents differ."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.errors import InvalidDefinition
from horarium.features.bundles.document import (
    MAX_DIFFERENCES,
    MAX_DOCUMENTS,
    BundleAccess,
    BundleKind,
    DocumentDifference,
    InitialState,
    bundle_access,
    differences,
    in_order,
    initial_state,
    read_bundle,
)

S = BundleAccess


@pytest.mark.parametrize(
    ("owner", "bundle", "by_hand", "adopt", "expected"),
    [
        ("a", "a", False, False, S.OURS),
        ("a", "a", False, True, S.OURS),
        (None, None, False, False, S.OURS),
        ("b", "a", False, False, S.REFUSED),
        ("b", "a", False, True, S.TAKEN),
        ("b", None, False, False, S.REFUSED),
        ("b", None, False, True, S.TAKEN),
        (None, "a", False, False, S.TAKEN),
        (None, "a", True, False, S.KEPT),
        (None, "a", True, True, S.TAKEN),
        (None, None, True, False, S.KEPT),
        (None, None, True, True, S.TAKEN),
        ("workflow:w", "a", False, True, S.REFUSED),
        ("workflow:w", None, False, True, S.REFUSED),
        ("workflow:w", "workflow:w", False, False, S.OURS),
    ],
)
def test_a_bundle_changes_its_own(
    owner: str | None, bundle: str | None, by_hand: bool, adopt: bool, expected: BundleAccess
) -> None:
    assert bundle_access(owner, bundle, by_hand=by_hand, adopt=adopt) is expected


@pytest.mark.parametrize(
    ("given", "field", "why"),
    [
        ({"name": "a b"}, "bundle", "is not a valid ID"),
        ({"prune": True}, "bundle", "without a name"),
        ({"workflows": [{"name": "w"}]}, "workflows.0", "needs a workflow_id"),
        ({"agents": [{"name": "w"}]}, "agents.0", "needs an id"),
        ({"schedules": {}}, "schedules", "array"),
        ({"schedules": [{}] * (MAX_DOCUMENTS + 1)}, "schedules", "at most"),
        ({"schedules": [{"id": f"s{n}"} for n in range(MAX_DOCUMENTS)], "teams": [{"team_id": "t"}]}, "bundle", "most"),
        ({"workflows": [{"workflow_id": "w", "triggers": [{}] * MAX_DOCUMENTS}]}, "bundle", "workflow triggers"),
        ({"schedules": [1]}, "schedules.0", "must be an object"),
        ({"schedules": [{}]}, "schedules.0", "needs a schedule_id"),
        ({"schedules": [{"schedule_id": "a"}, {"id": "a"}]}, "schedules.1", "twice"),
        ({"schedules": [{"schedule_id": "a\0b"}]}, "schedules.0", "is not a valid ID"),
        ({"calendars": [{"name": 1}]}, "calendars.0", "needs a name"),
        ({"calendars": [{"name": "holidays:\0"}]}, "calendars.0", "is not a valid ID"),
        ({"calendars": [{"name": "c"}, {"name": "c"}]}, "calendars.1", "twice"),
    ],
    ids=lambda given: str(given)[:40],
)
def test_a_bad_bundle_is_refused(given: dict[str, Any], field: str, why: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        read_bundle(given.pop("name", None), given, prune=given.pop("prune", False))
    assert why in refused.value.errors[field][0]


def test_of_many_bad_documents_a_few_are_named() -> None:
    with pytest.raises(InvalidDefinition) as refused:
        read_bundle(None, {"schedules": [0] * MAX_DOCUMENTS})
    assert len(refused.value.errors) == 20


def test_a_rule_is_a_name_of_a_calendar() -> None:
    name = "holidays:US@America/New_York"
    assert list(read_bundle(None, {"calendars": [{"name": name}]}).of(BundleKind.CALENDAR)) == [name]


def test_what_a_schedule_says_of_its_beginning_is_taken_out() -> None:
    said = {"schedule_id": "a", "max_runs": 1, "pause_reason": "rest", "exhausted": True}
    assert initial_state(said) == (InitialState("rest", exhausted=True), {"schedule_id": "a", "max_runs": 1})
    for wrong in (
        {"pause_reason": 1},
        {"paused_until": 5},
        {"paused_until": "soon"},
        {"exhausted": "yes"},
        {"exhausted": True},
    ):
        with pytest.raises(InvalidDefinition):
            initial_state(wrong)


def test_documents_differ_field_by_field() -> None:
    old = {"name": "a", "spec": {"timezone": "UTC", "cron_expressions": ["0 2 * * *"]}, "labels": {"x": "1"}}
    new = {"name": "a", "spec": {"cron_expressions": ["0 3 * * *"]}, "labels": {"x": "1", "y": "2"}, "max_runs": 1}
    assert differences(old, new) == (
        DocumentDifference("spec.timezone", "UTC", None),
        DocumentDifference("spec.cron_expressions", ["0 2 * * *"], ["0 3 * * *"]),
        DocumentDifference("labels.y", None, "2"),
        DocumentDifference("max_runs", None, 1),
    )
    assert differences({"a": 1}, {"a": 1.0}) == ()
    assert differences({"a": 1}, {"a": True}) == (DocumentDifference("a", 1, True),)


def test_differences_are_bounded() -> None:
    many = differences({}, {str(number): number for number in range(1_000)})
    assert (len(many), many[-1].path) == (MAX_DIFFERENCES + 1, "…")
    [long] = differences({"memo": {"a": ["x" * 9_000]}}, {"memo": {"a": ["y" * 9_000]}})
    assert (long.path, len(long.old), len(long.new)) == ("memo.a", 500, 500)


@pytest.mark.parametrize(
    ("names", "named", "expected"),
    [
        ("abc", {}, "abc"),
        ("abc", {"a": "c"}, "cab"),
        ("abc", {"a": "b", "b": "c"}, "cba"),
        ("abcd", {"a": "bd", "d": "c"}, "bcda"),
        ("ab", {"a": "x", "b": "a"}, "ab"),
        ("ab", {"a": "a"}, "ab"),
    ],
    ids=["as given", "one names a later one", "a chain", "two branches", "one that is not in the bundle", "itself"],
)
def test_what_one_names_comes_before_it(names: str, named: dict[str, str], expected: str) -> None:
    assert in_order(names, lambda name: named.get(name, "")) == list(expected)


def test_a_circle_and_a_long_chain_come_to_an_end() -> None:
    assert sorted(in_order("abc", {"a": "b", "b": "c", "c": "a"}.__getitem__)) == ["a", "b", "c"]
    chain = [str(number) for number in range(MAX_DOCUMENTS)]
    assert in_order(chain, lambda name: [str(int(name) + 1)]) == chain[::-1]
