"""Who must say yes, to what, and how often."""

import time
from typing import Any

import pytest

from horarium.core.policy.approval import (
    NEVER,
    NEVER_SECONDS,
    SENSITIVE_GATES,
    ApprovalMode,
    ApprovalPolicy,
    StepProceeds,
    StepWaits,
    WhileWaiting,
    detect_bypass,
    input_hash,
    merge_approval_policies,
    parse_approval_policy,
    run_needs_approval,
    step_needs_approval,
)
from horarium.core.policy.queue import PolicyError
from horarium.instant import DAY, SECOND

M = ApprovalMode
NOW = 1_700_000_000 * SECOND


@pytest.mark.parametrize(
    ("requires", "has_assignee", "needs"),
    [
        (None, True, True),
        (None, False, False),
        (True, True, True),
        (True, False, True),
        (False, True, False),
        (False, False, False),
    ],
)
def test_a_run_with_an_assignee_needs_approval_unless_told_otherwise(requires, has_assignee, needs):
    for has_steps in (True, False):
        assert run_needs_approval(ApprovalPolicy(requires), has_assignee=has_assignee, has_steps=has_steps) is needs


@pytest.mark.parametrize("mode", M)
def test_every_node_holds_a_run_without_steps(mode):
    policy = ApprovalPolicy(False, mode)
    assert run_needs_approval(policy, has_assignee=True, has_steps=False) is (mode is M.EVERY_NODE)
    assert run_needs_approval(policy, has_assignee=True, has_steps=True) is False


# mode, gates of the policy, gates of the node, gate reported, outcome
STEPS = [
    (None, (), (), None, StepProceeds()),
    (None, (), ("publish",), None, StepProceeds()),
    (None, (), ("publish",), "spend", StepProceeds()),
    (None, ("publish",), ("publish", "spend"), None, StepWaits(("publish",))),
    (None, ("publish",), (), "publish", StepWaits(("publish",))),
    (M.EVERY_NODE, (), (), None, StepWaits()),
    (M.EVERY_NODE, ("publish",), ("publish",), None, StepWaits(("publish",))),
    (M.SENSITIVE_ACTIONS, (), (), None, StepProceeds()),
    (M.SENSITIVE_ACTIONS, (), ("log",), None, StepProceeds()),
    (M.SENSITIVE_ACTIONS, (), ("spend", "delete"), None, StepWaits(("delete", "spend"))),
    (M.SENSITIVE_ACTIONS, ("log",), ("log",), None, StepWaits(("log",))),
    (M.SENSITIVE_ACTIONS, (), (), "publish", StepWaits(("publish",))),
    (M.SENSITIVE_ACTIONS, (), (), "log", StepProceeds()),
    (M.ON_BLOCK, (), ("publish",), None, StepProceeds()),
    (M.ON_BLOCK, (), (), "anything", StepWaits(("anything",))),
    (M.ON_BLOCK, ("publish",), ("publish",), None, StepWaits(("publish",))),
    (M.ON_BLOCK, ("publish",), ("publish",), "spend", StepWaits(("publish", "spend"))),
]


@pytest.mark.parametrize(("mode", "gates", "node", "reported", "outcome"), STEPS, ids=[str(row[:4]) for row in STEPS])
def test_the_mode_and_the_gates_hold_a_step(mode, gates, node, reported, outcome):
    policy = ApprovalPolicy(mode=mode, gates=frozenset(gates))
    assert step_needs_approval(policy, node_gates=node, reported_gate=reported) == outcome


def test_every_approval_mode_has_a_row_with_and_without_a_gate():
    for mode in (None, *ApprovalMode):
        assert {bool(row[1]) for row in STEPS if row[0] is mode} == {False, True}


@pytest.mark.parametrize("mode", [None, *ApprovalMode], ids=str)
@pytest.mark.parametrize("requires", [None, True, False])
@pytest.mark.parametrize("gate", sorted(SENSITIVE_GATES | {"house_rule"}))
def test_a_listed_gate_holds_whatever_else_the_policy_says(mode, requires, gate):
    policy = ApprovalPolicy(requires, mode, frozenset({gate}))
    assert step_needs_approval(policy, node_gates=[gate]) == StepWaits((gate,))


def test_the_first_given_value_wins_and_gates_add_up():
    schedule = ApprovalPolicy(None, M.ON_BLOCK, frozenset({"a"}))
    assignment = ApprovalPolicy(False, M.EVERY_NODE, frozenset({"b"}), 60)
    agent = ApprovalPolicy(True, None, frozenset({"c"}), 90)
    default = ApprovalPolicy(True, M.SENSITIVE_ACTIONS, frozenset({"d"}))
    assert merge_approval_policies(schedule, assignment, agent, default) == ApprovalPolicy(
        True, M.ON_BLOCK, frozenset("abcd"), 60
    )
    assert merge_approval_policies(None, None, agent, None) == agent
    assert merge_approval_policies(None, None, None, None) == ApprovalPolicy()


@pytest.mark.parametrize(
    ("said", "needed"),
    [
        ((False, None, None), False),
        ((False, True, None), True),
        ((False, False, True), True),
        ((None, False, True), True),
        ((None, None, None), None),
        ((None, False, None), False),
    ],
    ids=str,
)
def test_whoever_asks_for_an_approval_is_heard(said, needed):
    assert merge_approval_policies(*map(ApprovalPolicy, said)).requires_approval is needed


def test_who_decides_and_how_is_the_word_of_the_first_who_says_it():
    first = ApprovalPolicy(approvals_required=2, while_waiting=WhileWaiting.IGNORE)
    second = ApprovalPolicy(
        approvals_required=3,
        approvers=frozenset({"ada"}),
        allow_requester=True,
        while_waiting=WhileWaiting.SUPERSEDE,
        expires_after_seconds=NEVER_SECONDS,
    )
    third = ApprovalPolicy(approvers=frozenset({"bob"}), allow_requester=False, expires_after_seconds=60)
    merged = merge_approval_policies(first, second, third)
    assert (merged.approvals_required, merged.approvers, merged.allow_requester) == (2, frozenset({"ada"}), True)
    assert (merged.while_waiting, merged.expires_after_seconds) == (WhileWaiting.IGNORE, NEVER_SECONDS)


def test_an_explicit_default_expiry_is_not_overruled():
    assert merge_approval_policies(
        ApprovalPolicy(expires_after_seconds=86_400), None, ApprovalPolicy(expires_after_seconds=60), None
    ) == (ApprovalPolicy(expires_after_seconds=86_400))


def test_an_approval_expires_after_a_day_by_default():
    assert ApprovalPolicy().expires_at(NOW) == NOW + DAY
    assert ApprovalPolicy(expires_after_seconds=5).expires_at(NOW) == NOW + 5 * SECOND


def test_null_is_no_end_and_saying_nothing_is_a_day():
    never = parse_approval_policy({"expiresAfterSeconds": None})
    assert never.expires_at(NOW) == NEVER
    assert never.document() == {"expires_after_seconds": None}
    assert parse_approval_policy(never.document()) == never
    assert parse_approval_policy({"mode": None}) == ApprovalPolicy()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": 1}, {"a": True}, False),
        ({}, None, False),
        ({"a": "é"}, {"a": "e\u0301"}, False),
    ],
    ids=["key order", "array order", "number and text", "number and flag", "empty and null", "no normalisation"],
)
def test_inputs_hash_alike_if_they_are_the_same_document(one, other, same):
    assert (input_hash(one) == input_hash(other)) is same


def test_the_hash_is_the_sha256_of_canonical_json():
    # sha256sum of {"a":[1,"\\u00e9"],"b":null} by the shell tool, without a newline
    assert input_hash({"b": None, "a": [1, "é"]}) == (
        "e6ad993c7a569e941cdd65aa57c817cb74d20d9877b15dfc8cc0ac151c74785d"
    )


def deep(depth):
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "inputs",
    [float("nan"), {"a": float("inf")}, {1, 2}, {"a": object()}, {1: 1, "1": 2}, deep(100_000), 10**100_000],
    ids=["nan", "infinity", "set", "object", "mixed keys", "deep", "huge"],
)
def test_inputs_that_are_no_json_are_refused_quickly(inputs):
    best = 1.0
    for _ in range(3):
        began = time.process_time()
        with pytest.raises(PolicyError, match="JSON") as caught:
            input_hash(inputs)
        best = min(best, time.process_time() - began)
    assert caught.value.field == "inputs"
    assert best < 0.010


def test_inputs_with_half_a_surrogate_have_a_hash():
    assert len(input_hash({"a": "\ud800"})) == 64


@pytest.mark.parametrize(
    ("asked", "noted"),
    [
        ({"approval_status": "not_required"}, "approval_status=not_required"),
        ({"approval_status": "approved"}, "approval_status=approved"),
        ({"approval_status": ""}, "approval_status="),
        ({"approval_status": "x" * 10_000}, "approval_status=" + "x" * 64),
        ({"skip": True}, "skip_approval"),
        ({"approval_status": "pending", "skip": True}, "skip_approval"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_asking_to_get_round_an_approval_is_noticed(asked, noted):
    assert detect_bypass(needs_approval=True, **asked) == noted
    assert detect_bypass(needs_approval=False, **asked) is None


@pytest.mark.parametrize("asked", [{}, {"approval_status": "pending"}, {"approval_status": "Pending"}], ids=str)
def test_asking_for_nothing_special_is_no_bypass(asked):
    assert detect_bypass(needs_approval=True, **asked) is None


def test_an_object_is_read_with_its_defaults():
    assert parse_approval_policy({}) == ApprovalPolicy()
    assert parse_approval_policy(
        {"requiresApproval": True, "mode": "OnBlock", "gates": ["publish", "publish"], "expiresAfterSeconds": 5}
    ) == ApprovalPolicy(True, M.ON_BLOCK, frozenset({"publish"}), 5)
    assert parse_approval_policy({"require_approval": False}) == ApprovalPolicy(False)
    whole = {
        "requires_approval": True,
        "mode": "on_block",
        "gates": ["a"],
        "expires_after_seconds": 5,
        "approvals_required": 2,
        "approvers": ["bob", "role:owner"],
        "allow_requester": True,
        "while_waiting": "supersede",
    }
    assert parse_approval_policy(whole).document() == whole


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"requiresApproval": "no"}, "requires_approval"),
        ({"requiresApproval": 0}, "requires_approval"),
        ({"mode": "never"}, "mode"),
        ({"gates": "publish"}, "gates"),
        ({"gates": [1]}, "gates"),
        ({"expires_after_seconds": 0}, "expires_after_seconds"),
        ({"approvals_required": 0}, "approvals_required"),
        ({"approvals_required": 101}, "approvals_required"),
        ({"approvers": "ada"}, "approvers"),
        ({"approvers": ["role:agent"]}, "approvers"),
        ({"allow_requester": 1}, "allow_requester"),
        ({"while_waiting": "block"}, "while_waiting"),
        ({"skip": True}, "skip"),
        (True, "approval_policy"),
    ],
    ids=str,
)
def test_a_wrong_object_is_refused_by_its_key(document, field):
    with pytest.raises(PolicyError) as caught:
        parse_approval_policy(document)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"requires_approval": 1}, "requires_approval"),
        ({"mode": "on_block"}, "mode"),
        ({"gates": {"publish"}}, "gates"),
        ({"gates": frozenset({""})}, "gates"),
        ({"expires_after_seconds": -1}, "expires_after_seconds"),
        ({"approvers": {"ada"}}, "approvers"),
        ({"while_waiting": "count"}, "while_waiting"),
    ],
    ids=str,
)
def test_an_invalid_approval_policy_cannot_be_built(settings, field):
    with pytest.raises(PolicyError) as caught:
        ApprovalPolicy(**settings)
    assert caught.value.field == field
