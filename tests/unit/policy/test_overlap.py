"""The overlap table, row by row."""

import pytest

from horarium.core.policy.queue import (
    OVERLAP_ALIASES,
    Buffer,
    Overlap,
    OverlapPolicy,
    PolicyError,
    Refuse,
    Start,
    decide_overlap,
    parse_overlap,
    parse_overlap_policy,
)

P = OverlapPolicy
SKIPPED = Refuse("overlap_policy_skip")
FULL = Refuse("buffer_full")

# policy, settings, active, held, outcome
TABLE = [
    (P.SKIP, {}, 0, 0, Start()),
    (P.SKIP, {}, 1, 0, SKIPPED),
    (P.SKIP, {}, 0, 1, SKIPPED),
    (P.SKIP, {"max_concurrency": 3}, 2, 0, Start()),
    (P.SKIP, {"max_concurrency": 3}, 2, 1, SKIPPED),
    (P.SKIP, {"max_concurrency": 3}, 3, 0, SKIPPED),
    (P.BUFFER_ONE, {}, 0, 0, Start()),
    (P.BUFFER_ONE, {}, 1, 0, Buffer()),
    (P.BUFFER_ONE, {}, 1, 1, FULL),
    (P.BUFFER_ONE, {}, 0, 1, FULL),
    (P.BUFFER_ONE, {"max_concurrency": 2}, 1, 0, Start()),
    (P.BUFFER_ONE, {"max_concurrency": 2}, 2, 0, Buffer()),
    (P.BUFFER_ONE, {"max_buffered": 5}, 1, 1, FULL),
    (P.BUFFER_ALL, {}, 0, 0, Start()),
    (P.BUFFER_ALL, {}, 1, 0, Buffer()),
    (P.BUFFER_ALL, {}, 0, 1, Buffer()),
    (P.BUFFER_ALL, {}, 1, 10_000, Buffer()),
    (P.BUFFER_ALL, {"max_buffered": 2}, 1, 1, Buffer()),
    (P.BUFFER_ALL, {"max_buffered": 2}, 1, 2, FULL),
    (P.BUFFER_ALL, {"max_buffered": 0}, 1, 0, FULL),
    (P.BUFFER_ALL, {"max_buffered": 0}, 0, 0, Start()),
    (P.BUFFER_ALL, {"max_concurrency": 2}, 1, 1, Buffer()),
    (P.ALLOW_ALL, {}, 0, 0, Start()),
    (P.ALLOW_ALL, {}, 10_000, 5, Start()),
    (P.ALLOW_ALL, {"max_concurrency": 2}, 1, 0, Start()),
    (P.ALLOW_ALL, {"max_concurrency": 2}, 2, 0, Refuse("max_concurrent_reached")),
    (P.ALLOW_ALL, {"max_concurrency": 2}, 1, 1, Refuse("max_concurrent_reached")),
    (P.CANCEL_OTHER, {}, 0, 0, Start()),
    (P.CANCEL_OTHER, {}, 1, 0, Buffer(cancel_active=True)),
    (P.CANCEL_OTHER, {}, 1, 3, Buffer(cancel_active=True)),
    (P.CANCEL_OTHER, {}, 0, 1, Buffer(cancel_active=True)),
    (P.CANCEL_OTHER, {"max_concurrency": 2}, 1, 0, Start()),
    (P.TERMINATE_OTHER, {}, 0, 0, Start()),
    (P.TERMINATE_OTHER, {}, 1, 0, Start(terminate_active=True)),
    (P.TERMINATE_OTHER, {}, 0, 1, Start()),
    (P.TERMINATE_OTHER, {"max_concurrency": 2}, 1, 0, Start()),
    (P.TERMINATE_OTHER, {"max_concurrency": 2}, 2, 0, Start(terminate_active=True)),
]


@pytest.mark.parametrize(
    ("policy", "settings", "active", "held", "outcome"),
    TABLE,
    ids=[f"{row[0]} {row[1] or ''} active={row[2]} held={row[3]}" for row in TABLE],
)
def test_the_table_decides(policy, settings, active, held, outcome):
    assert decide_overlap(Overlap(policy, **settings), active=active, held=held) == outcome


# policy, settings, active, held, of them by a backfill, outcome
BESIDE_A_BACKFILL = [
    (P.SKIP, {}, 1, 3, 3, Buffer()),
    (P.SKIP, {}, 0, 1, 1, Buffer()),
    (P.SKIP, {}, 1, 9, 3, Buffer()),
    (P.SKIP, {"max_concurrency": 3}, 1, 1, 1, Buffer()),
    (P.SKIP, {"max_buffered": 2}, 1, 3, 2, Buffer()),
    (P.SKIP, {"max_buffered": 2}, 1, 4, 2, FULL),
    (P.BUFFER_ONE, {}, 1, 3, 3, Buffer()),
    (P.BUFFER_ONE, {}, 1, 4, 3, FULL),
    (P.BUFFER_ALL, {"max_buffered": 1}, 1, 3, 3, Buffer()),
    (P.BUFFER_ALL, {"max_buffered": 1}, 1, 4, 3, FULL),
    (P.ALLOW_ALL, {}, 1, 3, 3, Start()),
    (P.ALLOW_ALL, {"max_concurrency": 2}, 1, 3, 3, Start()),
    (P.ALLOW_ALL, {"max_concurrency": 2}, 2, 3, 3, Buffer()),
    (P.CANCEL_OTHER, {}, 1, 3, 3, Buffer(cancel_active=True)),
    (P.TERMINATE_OTHER, {}, 1, 3, 3, Start(terminate_active=True)),
]


@pytest.mark.parametrize(("policy", "settings", "active", "held", "backfilled", "outcome"), BESIDE_A_BACKFILL, ids=str)
def test_an_occurrence_waits_behind_what_a_backfill_holds(policy, settings, active, held, backfilled, outcome):
    found = decide_overlap(Overlap(policy, **settings), active=active, held=held, backfilled=backfilled)
    assert found == outcome


def test_every_overlap_policy_has_a_row_when_free_and_when_busy():
    for policy in OverlapPolicy:
        rows = [(row[2], row[3]) for row in TABLE if row[0] is policy and not row[1]]
        assert (0, 0) in rows
        assert any(active > 0 for active, _ in rows)


@pytest.mark.parametrize("policy", list(OverlapPolicy))
def test_an_idle_schedule_starts_under_every_policy(policy):
    assert decide_overlap(Overlap(policy), active=0, held=0) == Start()
    assert decide_overlap(Overlap(policy), active=0, held=0, caught_up=True) == Start()


@pytest.mark.parametrize(
    ("settings", "active", "held", "outcome"),
    [({}, 1, 0, Buffer()), ({}, 1, 50, Buffer()), ({}, 0, 1, Buffer()), ({"max_buffered": 2}, 1, 2, FULL)],
    ids=["busy", "long backlog", "held only", "buffer full"],
)
def test_a_caught_up_occurrence_under_skip_is_buffered(settings, active, held, outcome):
    assert decide_overlap(Overlap(P.SKIP, **settings), active=active, held=held, caught_up=True) == outcome


@pytest.mark.parametrize("policy", [each for each in OverlapPolicy if each is not P.SKIP])
def test_being_caught_up_changes_nothing_for_the_other_policies(policy):
    overlap = Overlap(policy, max_concurrency=2, max_buffered=2)
    for active in range(4):
        for held in range(4):
            late = decide_overlap(overlap, active=active, held=held, caught_up=True)
            assert late == decide_overlap(overlap, active=active, held=held)


@pytest.mark.parametrize("policy", list(OverlapPolicy))
def test_capacity_is_one_unless_told_otherwise(policy):
    assert Overlap(policy).capacity == (None if policy is P.ALLOW_ALL else 1)
    assert Overlap(policy, max_concurrency=7).capacity == 7


def test_the_aliases_are_those_of_the_vocabularies_we_read():
    assert dict(OVERLAP_ALIASES) == {
        "serial": P.SKIP,
        "forbid": P.SKIP,
        "queue": P.BUFFER_ALL,
        "allow": P.ALLOW_ALL,
        "parallel": P.ALLOW_ALL,
        "replace": P.CANCEL_OTHER,
    }
    assert parse_overlap_policy("BufferOne") is P.BUFFER_ONE


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"policy": "skip"}, "overlap_policy"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"max_concurrency": True}, "max_concurrency"),
        ({"max_buffered": -1}, "max_buffered"),
        ({"max_buffered": 1.5}, "max_buffered"),
        ({"cancel_grace_seconds": -1}, "cancel_grace_seconds"),
        ({"cancel_grace_seconds": None}, "cancel_grace_seconds"),
    ],
    ids=str,
)
def test_an_invalid_overlap_cannot_be_built(settings, field):
    with pytest.raises(PolicyError) as caught:
        Overlap(**settings)
    assert caught.value.field == field


@pytest.mark.parametrize("counts", [{"active": -1, "held": 0}, {"active": 0, "held": -1}], ids=str)
def test_counts_are_not_negative(counts):
    with pytest.raises(PolicyError):
        decide_overlap(Overlap(), **counts)


def test_an_object_is_read_with_its_defaults():
    assert parse_overlap({}) == Overlap()
    assert parse_overlap(
        {"overlapPolicy": "Replace", "maxConcurrency": 2, "max_buffered": 4, "cancelGraceSeconds": 0}
    ) == Overlap(P.CANCEL_OTHER, 2, 4, 0)
    with pytest.raises(PolicyError) as caught:
        parse_overlap({"overlap_policy": "sometimes"})
    assert caught.value.field == "overlap_policy"
