"""Who may decide, how many must agree, and what a yes that was given beforehand is good for."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.policy.approval import ApprovalDecision
from horarium.core.policy.votes import (
    RUN_CANCELLED,
    Approved,
    Decision,
    OpenRequest,
    Refusal,
    Rejected,
    StandingGrant,
    StillOpen,
    Vote,
    Voter,
    VoteRefused,
    grant_covers,
    judge,
    may_decide,
    parse_decision,
)
from horarium.instant import DAY, SECOND

NOW = 1_700_000_000 * SECOND
SHOWN, CHANGED = "a" * 64, "b" * 64
ADA = Voter("ada", "operator", permitted=True)
BOB = Voter("bob", "owner", permitted=True)
VIEWER = Voter("vera", "viewer", permitted=False)


def asked(**changes: Any) -> OpenRequest:
    values: dict[str, Any] = {"input_hash": SHOWN, "expires_at": NOW + DAY, **changes}
    return OpenRequest(**values)


def said(question: OpenRequest, voter: Voter = ADA, decision: Decision = Decision.APPROVE, **changes: Any) -> Any:
    values: dict[str, Any] = {"now": NOW, "current_hash": SHOWN, **changes}
    found = judge(question, voter, decision, **values)
    return found.refusal if isinstance(found, VoteRefused) else found


MAY = [
    ("whoever holds the permission", {}, ADA, None),
    ("a role without it", {}, VIEWER, Refusal.NOT_AN_APPROVER),
    ("a list replaces the permission", {"approvers": frozenset({"vera"})}, VIEWER, None),
    ("also for those who hold it", {"approvers": frozenset({"vera"})}, ADA, Refusal.NOT_AN_APPROVER),
    ("a role on the list", {"approvers": frozenset({"role:viewer"})}, VIEWER, None),
    ("another role on it", {"approvers": frozenset({"role:owner"})}, ADA, Refusal.NOT_AN_APPROVER),
    (
        "nor is a principal called like one",
        {"approvers": frozenset({"role:admin"})},
        Voter("role:admin", "operator", permitted=True),
        Refusal.NOT_AN_APPROVER,
    ),
    ("a role is no principal", {"approvers": frozenset({"operator"})}, ADA, Refusal.NOT_AN_APPROVER),
    ("who asked for it", {"requesters": frozenset({"ada"})}, ADA, Refusal.REQUESTER_MAY_NOT_DECIDE),
    (
        "also if listed",
        {"requesters": frozenset({"ada"}), "approvers": frozenset({"ada"})},
        ADA,
        Refusal.REQUESTER_MAY_NOT_DECIDE,
    ),
    ("unless that is allowed", {"requesters": frozenset({"ada"}), "allow_requester": True}, ADA, None),
    ("somebody else", {"requesters": frozenset({"ada"})}, BOB, None),
    ("an agent never", {}, Voter("ada", "agent", permitted=False, is_agent=True), Refusal.APPROVAL_REQUIRED),
    (
        "also if listed",
        {"approvers": frozenset({"ada"})},
        Voter("ada", "agent", permitted=False, is_agent=True),
        Refusal.APPROVAL_REQUIRED,
    ),
    ("nor whoever works", {}, Voter("ada", "admin", permitted=True, is_worker=True), Refusal.APPROVAL_REQUIRED),
]


@pytest.mark.parametrize(("question", "voter", "refusal"), [row[1:] for row in MAY], ids=[row[0] for row in MAY])
def test_who_may_decide(question: dict[str, Any], voter: Voter, refusal: Refusal | None) -> None:
    found = may_decide(asked(**question), voter)
    assert (None if found is None else found.refusal) == refusal
    for decision in Decision:
        heard = said(asked(**question), voter, decision, new_hash=CHANGED)
        assert (heard == refusal) if refusal is not None else not isinstance(heard, Refusal)


def test_whoever_is_alone_is_told_the_ways_out() -> None:
    found = may_decide(asked(requesters=frozenset({"ada"})), ADA)
    assert found is not None
    assert "token with another subject" in found.text
    assert "allow_requester: true" in found.text


CLOSED = [
    ({"decision": ApprovalDecision.APPROVED, "decider": "bob"}, {}, Refusal.ALREADY_DECIDED),
    ({"decision": ApprovalDecision.REJECTED}, {}, Refusal.ALREADY_DECIDED),
    ({"decision": ApprovalDecision.MODIFIED}, {}, Refusal.ALREADY_DECIDED),
    ({"decision": ApprovalDecision.EXPIRED}, {}, Refusal.APPROVAL_EXPIRED),
    ({"decision": ApprovalDecision.EXPIRED, "reason": RUN_CANCELLED}, {}, Refusal.ALREADY_DECIDED),
    ({}, {"now": NOW + DAY}, Refusal.APPROVAL_EXPIRED),
    ({}, {"now": NOW + DAY - 1}, Approved(SHOWN)),
    ({}, {"current_hash": CHANGED}, Refusal.INPUTS_CHANGED),
    ({}, {"shown_hash": CHANGED}, Refusal.INPUTS_CHANGED),
    ({}, {"shown_hash": SHOWN}, Approved(SHOWN)),
]


@pytest.mark.parametrize(("question", "changes", "outcome"), CLOSED, ids=str)
def test_a_question_is_answered_once_in_time_and_for_what_was_shown(
    question: dict[str, Any], changes: dict[str, Any], outcome: object
) -> None:
    assert said(asked(**question), **changes) == outcome


YES, NO, MODIFY = Decision.APPROVE, Decision.REJECT, Decision.MODIFY
QUORUM = [
    (1, (), YES, Approved(SHOWN)),
    (2, (), YES, StillOpen(1)),
    (3, (("bob", SHOWN),), YES, StillOpen(1)),
    (2, (("bob", SHOWN),), YES, Approved(SHOWN)),
    (2, (("ada", SHOWN),), YES, StillOpen(1)),  # a second yes of the same person
    (2, (("bob", CHANGED),), YES, StillOpen(1)),  # for other inputs
    (2, (("bob", SHOWN),), NO, Rejected()),
    (1, (), MODIFY, Approved(CHANGED)),
    (2, (("bob", SHOWN),), MODIFY, StillOpen(1)),  # the old voice counts no more
    (2, (("bob", CHANGED),), MODIFY, Approved(CHANGED)),  # said for these very inputs before
]


@pytest.mark.parametrize(("needed", "votes", "decision", "outcome"), QUORUM, ids=str)
def test_different_people_must_agree_to_the_same_inputs(
    needed: int, votes: tuple[tuple[str, str], ...], decision: Decision, outcome: object
) -> None:
    question = asked(approvals_required=needed, votes=tuple(Vote(*each) for each in votes))
    assert said(question, ADA, decision, new_hash=CHANGED) == outcome


@pytest.mark.parametrize(
    ("word", "decision"), [("approve", YES), ("Reject", NO), ("MODIFY", MODIFY), ("approved", YES), ("rejected", NO)]
)
def test_a_decision_is_read_as_verb_or_participle(word: str, decision: Decision) -> None:
    assert parse_decision(word) is decision


# what stands, what is asked, whether it covers
STANDING = [
    ("its gate", {}, {}, True),
    ("one of its gates", {"gates": frozenset({"publish", "spend"})}, {}, True),
    ("a gate more than it has", {}, {"gates": ("publish", "spend")}, False),
    ("an agent's question", {"gates": frozenset({"agent_input"})}, {"gates": ("agent_input",)}, False),
    ("an agent that asks for leave", {"gates": frozenset({"agent_auth"})}, {"gates": ("agent_auth",)}, True),
    ("until", {"until": NOW + 1}, {}, True),
    ("no longer", {"until": NOW}, {}, False),
    ("the last use", {"max_uses": 3, "uses": 2}, {}, True),
    ("used up", {"max_uses": 3, "uses": 3}, {}, False),
    ("a gate, after an edit", {"revision": 1}, {"revision": 2}, True),
    ("the whole run", {"revision": 1}, {"whole_run": True, "revision": 1}, True),
    ("the whole run, after an edit", {"revision": 1}, {"whole_run": True, "revision": 2}, False),
    ("with other inputs", {"revision": 1}, {"whole_run": True, "revision": 1, "brings_inputs": True}, False),
    ("a step has its own", {"revision": 1}, {"gates": (), "revision": 1, "brings_inputs": True}, True),
    ("the whole run, by a workflow", {}, {"whole_run": True, "revision": 1}, False),
    ("a step without a gate", {"revision": 1}, {"gates": (), "revision": 1}, True),
    ("a step without a gate, after an edit", {"revision": 1}, {"gates": (), "revision": 2}, False),
    ("of a run that no schedule asked for", {}, {"gates": (), "revision": None}, False),
    ("asked for by whoever gave it", {}, {"question": asked(requesters=frozenset({"ada"}))}, False),
    ("not an approver any more", {}, {"question": asked(approvers=frozenset({"bob"}))}, False),
]


@pytest.mark.parametrize(("stands", "asks", "is_covered"), [row[1:] for row in STANDING], ids=[r[0] for r in STANDING])
def test_a_standing_approval_covers_its_gates(stands: dict[str, Any], asks: dict[str, Any], is_covered: bool) -> None:
    given: dict[str, Any] = {"gates": frozenset({"publish"}), "maker": ADA, **stands}
    standing = StandingGrant(**given)
    question: dict[str, Any] = {"gates": ("publish",), "revision": 1, "whole_run": False, "question": asked()}
    values = question | asks
    assert grant_covers(standing, values.pop("question"), now=NOW, **values) is is_covered
