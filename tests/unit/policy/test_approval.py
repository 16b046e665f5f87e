"""Who must say yes, to what, and how often."""

import time
from typing import Any

import pytest

from horarium.errors import ApprovalRefused
from horarium.instant import DAY, SECOND
from horarium.policy.approval import (
    SENSITIVE_GATES,
    Approval,
    ApprovalDecision,
    ApprovalMode,
    ApprovalPolicy,
    Approved,
    BypassAttempt,
    Rejected,
    StepProceeds,
    StepWaits,
    decide_approval,
    detect_bypass,
    input_hash,
    merge,
    parse_approval_policy,
    parse_decision,
    run_needs_approval,
    step_needs_approval,
)
from horarium.policy.names import PolicyError

M = ApprovalMode
NOW = 1_700_000_000 * SECOND
INPUTS = {"prompt": "hello", "n": 1}


def pending(**changes):
    asked: dict[str, Any] = {
        "approval_id": "a1",
        "run_id": "r1",
        "input_hash": input_hash(INPUTS),
        "expires_at": NOW + DAY,
    }
    return Approval(**(asked | changes))


def decide(approval=None, decision=ApprovalDecision.APPROVED, **changes):
    said: dict[str, Any] = {"now": NOW, "decider": "ada", "current_input_hash": input_hash(INPUTS)}
    return decide_approval(approval or pending(), decision=decision, **(said | changes))


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
    assert run_needs_approval(ApprovalPolicy(requires), has_assignee=has_assignee) is needs


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
    assert merge(schedule, assignment, agent, default) == ApprovalPolicy(False, M.ON_BLOCK, frozenset("abcd"), 60)
    assert merge(None, None, agent, None) == agent
    assert merge(None, None, None, None) == ApprovalPolicy()


def test_an_explicit_default_expiry_is_not_overruled():
    assert merge(
        ApprovalPolicy(expires_after_seconds=86_400), None, ApprovalPolicy(expires_after_seconds=60), None
    ) == (ApprovalPolicy(expires_after_seconds=86_400))


def test_an_approval_expires_after_a_day_by_default():
    assert ApprovalPolicy().expires_at(NOW) == NOW + DAY
    assert ApprovalPolicy(expires_after_seconds=5).expires_at(NOW) == NOW + 5 * SECOND


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


def test_a_yes_is_recorded_with_its_decider():
    outcome = decide(reason="looks right")
    assert outcome == Approved(
        pending(decision=ApprovalDecision.APPROVED, decider="ada", reason="looks right", decided_at=NOW), {}
    )


def test_a_no_is_recorded_with_its_decider():
    outcome = decide(decision=ApprovalDecision.REJECTED)
    assert outcome == Rejected(pending(decision=ApprovalDecision.REJECTED, decider="ada", decided_at=NOW))


def test_a_modification_carries_its_patch_and_not_the_callers_object():
    patch = {"n": 2}
    outcome = decide(decision=ApprovalDecision.MODIFIED, modifications=patch)
    patch["n"] = 3
    assert outcome.approval.decision is ApprovalDecision.MODIFIED
    assert dict(outcome.inputs_patch) == {"n": 2}


@pytest.mark.parametrize("first", [each for each in ApprovalDecision if each is not ApprovalDecision.PENDING])
def test_a_decision_is_made_once(first):
    done = pending(decision=first, decider="bob", decided_at=NOW - 1)
    with pytest.raises(ApprovalRefused, match=f"{first.value} already, by bob"):
        decide(done)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"now": NOW + DAY}, "expired"),
        ({"current_input_hash": "0" * 64}, "changed"),
        ({"decision": ApprovalDecision.PENDING}, "pending is not a decision"),
        ({"decision": ApprovalDecision.MODIFIED}, "needs an object"),
        ({"decision": ApprovalDecision.MODIFIED, "modifications": {}}, "needs an object"),
        ({"decision": ApprovalDecision.MODIFIED, "modifications": [1]}, "needs an object"),
        ({"decision": ApprovalDecision.MODIFIED, "modifications": {1: 2}}, "named by texts"),
        ({"decision": ApprovalDecision.MODIFIED, "modifications": {"a": float("nan")}}, "no JSON"),
        ({"decision": ApprovalDecision.APPROVED, "modifications": {"a": 1}}, "only a decision to modify"),
        ({"decision": ApprovalDecision.REJECTED, "modifications": {"a": 1}}, "only a decision to modify"),
        ({"decider": ""}, "needs a decider"),
        ({"decider": "x" * 10_000}, "needs a decider"),
        ({"reason": "x" * 10_000}, "reason is longer"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_wrong_decision_is_refused(changes, words):
    with pytest.raises(ApprovalRefused, match=words):
        decide(**changes)


@pytest.mark.parametrize("word", ["approved", "rejected", "modified"])
def test_a_bare_word_in_place_of_a_decision_is_never_a_yes(word):
    patch = {"n": 2} if word == "modified" else None
    with pytest.raises((PolicyError, ApprovalRefused)):
        decide(decision=word, modifications=patch)


def test_the_last_microsecond_before_expiry_is_in_time():
    assert isinstance(decide(now=NOW + DAY - 1), Approved)


@pytest.mark.parametrize(
    "changes",
    [
        {"decision": ApprovalDecision.APPROVED},
        {"decision": ApprovalDecision.APPROVED, "decider": "ada"},
        {"decision": ApprovalDecision.APPROVED, "decided_at": NOW},
        {"decider": "ada"},
        {"decided_at": NOW},
        {"run_id": ""},
        {"decision": "pending"},
    ],
    ids=str,
)
def test_a_half_decided_approval_cannot_be_built(changes):
    with pytest.raises(PolicyError):
        pending(**changes)


@pytest.mark.parametrize(
    ("word", "decision"),
    [
        ("approve", ApprovalDecision.APPROVED),
        ("Reject", ApprovalDecision.REJECTED),
        ("MODIFY", ApprovalDecision.MODIFIED),
        ("approved", ApprovalDecision.APPROVED),
    ],
)
def test_a_decision_is_read_as_verb_or_participle(word, decision):
    assert parse_decision(word) is decision


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
    who: dict[str, Any] = {"run_id": "r1", "principal": "service:cron"}
    assert detect_bypass(needs_approval=True, **who, **asked) == BypassAttempt("r1", "service:cron", noted)
    assert detect_bypass(needs_approval=False, **who, **asked) is None


@pytest.mark.parametrize("asked", [{}, {"approval_status": "pending"}, {"approval_status": "Pending"}], ids=str)
def test_asking_for_nothing_special_is_no_bypass(asked):
    assert detect_bypass(needs_approval=True, run_id="r1", principal="ada", **asked) is None


def test_an_object_is_read_with_its_defaults():
    assert parse_approval_policy({}) == ApprovalPolicy()
    assert parse_approval_policy(
        {"requiresApproval": True, "mode": "OnBlock", "gates": ["publish", "publish"], "expiresAfterSeconds": 5}
    ) == ApprovalPolicy(True, M.ON_BLOCK, frozenset({"publish"}), 5)
    assert parse_approval_policy({"require_approval": False}) == ApprovalPolicy(False)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"requiresApproval": "no"}, "requires_approval"),
        ({"requiresApproval": 0}, "requires_approval"),
        ({"mode": "never"}, "mode"),
        ({"gates": "publish"}, "gates"),
        ({"gates": [1]}, "gates"),
        ({"expires_after_seconds": 0}, "expires_after_seconds"),
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
    ],
    ids=str,
)
def test_an_invalid_approval_policy_cannot_be_built(settings, field):
    with pytest.raises(PolicyError) as caught:
        ApprovalPolicy(**settings)
    assert caught.value.field == field
