"""What a failed step does to the rest of its workflow."""

import pytest

from horarium.core.policy.approval import (
    FailureMode,
    FailurePolicy,
    HaltRun,
    Reassign,
    SkipDependants,
    on_step_failure,
    parse_failure_policy,
)
from horarium.core.policy.queue import PolicyError

TABLE = [
    (FailurePolicy(FailureMode.ISOLATE), False, SkipDependants()),
    (FailurePolicy(FailureMode.ISOLATE), True, SkipDependants()),
    (FailurePolicy(FailureMode.HALT), False, HaltRun()),
    (FailurePolicy(FailureMode.HALT), True, HaltRun()),
    (FailurePolicy(FailureMode.FALLBACK, "agent-2"), False, Reassign("agent-2")),
    (FailurePolicy(FailureMode.FALLBACK, "agent-2"), True, SkipDependants()),
]


@pytest.mark.parametrize(("policy", "again", "outcome"), TABLE, ids=[f"{row[0].mode} again={row[1]}" for row in TABLE])
def test_the_mode_decides_and_a_fallback_happens_once(policy, again, outcome):
    assert on_step_failure(policy, already_fallen_back=again) == outcome


def test_every_failure_mode_has_a_row():
    assert {row[0].mode for row in TABLE} == set(FailureMode)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"mode": FailureMode.FALLBACK}, "fallback_assignee_id"),
        ({"mode": FailureMode.FALLBACK, "fallback_assignee_id": ""}, "fallback_assignee_id"),
        ({"fallback_assignee_id": 7}, "fallback_assignee_id"),
        ({"mode": "halt"}, "mode"),
    ],
    ids=str,
)
def test_an_invalid_failure_policy_cannot_be_built(settings, field):
    with pytest.raises(PolicyError) as caught:
        FailurePolicy(**settings)
    assert caught.value.field == field


def test_an_object_is_read_with_its_defaults():
    assert parse_failure_policy({}) == FailurePolicy(FailureMode.ISOLATE)
    assert parse_failure_policy({"mode": "Fallback", "fallbackAssigneeId": "a"}) == FailurePolicy(
        FailureMode.FALLBACK, "a"
    )


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"mode": "ignore"}, "mode"),
        ({"mode": "fallback"}, "fallback_assignee_id"),
        ({"fallback_assignee_id": []}, "fallback_assignee_id"),
        ({"modes": "halt"}, "modes"),
        (None, "failure_policy"),
    ],
    ids=str,
)
def test_a_wrong_object_is_refused_by_its_key(document, field):
    with pytest.raises(PolicyError) as caught:
        parse_failure_policy(document)
    assert caught.value.field == field
