"""Who gets a place: a pure table of limits, turns and priorities."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horarium.engine.capacity import Capacity, LaunchPlace, Limits, choose_runs, places_for
from horarium.features.runs.work_rows import ClaimCandidate, ReadyTarget

SLOW, FAST = "http:http://slow:80", "http:http://fast:80"


def kind_of(_namespace: str, target: str) -> str | None:
    kind = target.partition(":")[0]
    return None if kind == "pull" else kind


def room(limits: Limits | None = None, *seats: tuple[str, str], alone: bool = False) -> Capacity:
    made = Capacity(limits or Limits())
    made.alone = alone
    for namespace, target in seats:
        made.enter(LaunchPlace(namespace, target.partition(":")[0], target))
    return made


def candidate(namespace: str, target: str, number: int, priority: int = 0, ready_at: int = 0) -> ClaimCandidate:
    return ClaimCandidate(namespace, target, -priority, ready_at, number.to_bytes(16, "big"))


def chosen(
    candidates: list[ClaimCandidate], of: Capacity, *, after: str = "", most: int = 1_000
) -> list[ClaimCandidate]:
    return choose_runs(candidates, of, kind_of, after=after, most=most)


def seat(namespace: str = "a", target: str = SLOW) -> LaunchPlace:
    return LaunchPlace(namespace, target.partition(":")[0], target)


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_shipped_limits_are_those_that_are_promised() -> None:
    assert Limits() == Limits(process=500, namespace=250, target=32, kinds={})


@pytest.mark.parametrize(
    ("limits", "taken", "free"),
    [
        (Limits(process=3), [("b", FAST)], 2),
        (Limits(process=1), [("b", FAST)], 0),
        (Limits(namespace=2), [("a", FAST)], 1),
        (Limits(namespace=2), [("b", FAST)], 2),
        (Limits(target=4), [("b", SLOW)], 2),
        (Limits(target=4), [("b", SLOW)] * 3, 1),
        (Limits(target=4), [("a", SLOW)] * 2, 0),
        (Limits(kinds={"http": 4}), [("b", FAST)] * 3, 1),
        (Limits(kinds={"http": 4}), [("a", FAST)] * 2, 0),
        (Limits(kinds={"http": 10}), [("b", FAST)] * 5 + [("c", FAST)] * 3, 2),
        (Limits(kinds={"http": 10}), [("a", FAST)] + [("b", FAST)] * 5 + [("c", FAST)] * 2, 0),
        (Limits(kinds={"python": 1}), [("a", FAST)], 16),
        (Limits(target=1, kinds={"http": 1}), [], 1),
    ],
    ids=[
        "process", "full process", "namespace", "another namespace", "half a target", "rest of a target",
        "own half of a target", "rest of a kind", "own half of a kind",
        "last of a kind for who has none", "last of a kind not for who has some", "another kind", "at least one",
    ],
)  # fmt: skip
def test_four_limits_hold_at_once(limits: Limits, taken: list[tuple[str, str]], free: int) -> None:
    assert room(limits, *taken).free_for(seat()) == free


MAIL, BULK, OTHER_BROKER = "celery:default/mail", "celery:default/bulk", "celery:eu/mail"


@pytest.mark.parametrize(
    ("limits", "taken", "asked", "free"),
    [
        (Limits(process=1), [("b", FAST)], MAIL, 5),
        (Limits(namespace=1), [("a", FAST)], MAIL, 5),
        (Limits(), [("a", MAIL)] * 5, BULK, 0),
        (Limits(), [("a", MAIL)] * 5, OTHER_BROKER, 5),
        (Limits(), [("b", MAIL)] * 8, BULK, 2),
        (Limits(kinds={"celery": 4}), [("a", MAIL)], OTHER_BROKER, 1),
        (Limits(process=3), [("a", MAIL)] * 5, SLOW, 3),
    ],
    ids=[
        "a full process", "a full namespace", "own half of a broker", "another broker", "rest of a broker",
        "a kind that is limited", "a crowd at a broker is in nobody's way",
    ],
)  # fmt: skip
def test_what_is_handed_over_many_together_counts_at_its_broker_alone(
    limits: Limits, taken: list[tuple[str, str]], asked: str, free: int
) -> None:
    made = room(replace(limits, batched={"celery": 10}), *taken)
    assert made.free_for(seat("a", asked)) == free
    for namespace, target in taken:
        made.leave(LaunchPlace(namespace, target.partition(":")[0], target))
    assert (made.free, made.free_for(seat("a", MAIL))) == (limits.process, min(5, limits.kinds.get("celery", 10) // 2))


def test_a_tenant_alone_need_leave_no_room_for_others() -> None:
    limits = Limits(target=4, kinds={"http": 6})
    assert room(limits, alone=True).free_for(seat()) == 4
    assert room(limits, alone=False).free_for(seat()) == 2


def test_whoever_leaves_makes_room() -> None:
    made = room(Limits(process=1))
    made.enter(seat())
    assert (made.free, made.free_for(seat())) == (0, 0)
    made.leave(seat())
    assert (made.free, made.free_for(seat())) == (1, 1)


def test_a_copy_has_a_life_of_its_own() -> None:
    made = room()
    twin = made.copy()
    twin.enter(seat())
    assert (made.free, twin.free) == (500, 499)


def test_no_more_candidates_are_asked_for_than_there_is_room_for() -> None:
    ready = [ReadyTarget("a", SLOW), ReadyTarget("a", FAST), ReadyTarget("b", "pull:q")]
    full = room(Limits(target=4), ("a", SLOW), ("a", SLOW))
    assert places_for(ready, full, kind_of, 100) == [(ReadyTarget("a", FAST), 2), (ReadyTarget("b", "pull:q"), 50)]


def test_many_targets_share_what_one_claim_looks_at() -> None:
    ready = [ReadyTarget("a", f"http:http://h{n}:80") for n in range(100)]
    asked = places_for(ready, room(), kind_of, 1_000)
    assert {most for _, most in asked} == {10}


# ── turns ────────────────────────────────────────────────────────────────────────────────────────────


def test_namespaces_take_turns_from_the_one_behind_the_last() -> None:
    waiting = [candidate(name, FAST, number) for number, name in enumerate("aaabbc")]
    order = [each.namespace for each in chosen(waiting, room(alone=True), after="a")]
    assert order == ["b", "c", "a", "b", "a", "a"]


def test_the_highest_priority_comes_first_then_the_oldest() -> None:
    waiting = [
        candidate("a", FAST, 1, priority=0, ready_at=5),
        candidate("a", SLOW, 2, priority=7, ready_at=9),
        candidate("a", FAST, 3, priority=7, ready_at=8),
        candidate("a", SLOW, 4, priority=-9, ready_at=0),
    ]
    assert [each.run_id[-1] for each in chosen(waiting, room())] == [3, 2, 1, 4]


def test_priority_takes_no_turn_from_another_namespace() -> None:
    waiting = [candidate("loud", FAST, n, priority=100) for n in range(50)] + [candidate("quiet", FAST, 99)]
    assert "quiet" in {each.namespace for each in chosen(waiting, room(), most=2)}


def test_a_full_target_does_not_stand_in_the_way() -> None:
    full = room(Limits(target=2), ("a", SLOW), ("b", SLOW))
    waiting = [candidate("a", SLOW, 1, priority=9), candidate("a", FAST, 2)]
    assert [each.target for each in chosen(waiting, full)] == [FAST]


def test_what_takes_up_no_place_is_taken_whatever_is_full() -> None:
    full = room(Limits(process=1), ("a", FAST))
    assert [each.target for each in chosen([candidate("a", "pull:q", 1)], full)] == ["pull:q"]


NAMES = st.sampled_from("abc")
TARGETS = st.sampled_from([SLOW, FAST, "python:", "pull:q"])
CANDIDATES = st.lists(
    st.builds(candidate, NAMES, TARGETS, st.integers(0, 10_000), st.integers(-5, 5), st.integers(0, 9)),
    max_size=60, unique_by=lambda each: each.run_id,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(CANDIDATES, st.lists(st.tuples(NAMES, TARGETS), max_size=8), st.integers(1, 20), NAMES)
def test_no_limit_is_ever_passed_and_nobody_with_room_is_left_out(
    waiting: list[ClaimCandidate], taken: list[tuple[str, str]], most: int, after: str
) -> None:
    limits = Limits(process=12, namespace=7, target=4, kinds={"python": 3})
    before = room(limits, *(each for each in taken if kind_of(*each) is not None))
    found = chosen(waiting, before, after=after, most=most)
    assert len(found) == len(set(found)) <= most
    after_all = before.copy()
    for each in found:
        kind = kind_of(each.namespace, each.target)
        if kind is not None:
            assert after_all.free_for(LaunchPlace(each.namespace, kind, each.target)) > 0
            after_all.enter(LaunchPlace(each.namespace, kind, each.target))
    if len(found) < most:
        left = set(waiting) - set(found)
        assert all(kind_of(each.namespace, each.target) for each in left)
        assert not any(after_all.free_for(seat(each.namespace, each.target)) for each in left)


@settings(max_examples=100, deadline=None)
@given(CANDIDATES, st.integers(1, 20))
def test_a_turn_is_one_run(waiting: list[ClaimCandidate], most: int) -> None:
    """While each has candidates with room, no namespace is more than one run ahead of another."""
    found = chosen(waiting, room(Limits(process=1_000, namespace=1_000, target=1_000), alone=True), most=most)
    counts, left = Counter(each.namespace for each in found), set(waiting) - set(found)
    for name in {each.namespace for each in left}:
        assert all(counts[name] >= count - 1 for count in counts.values())


# ── at an agent ──────────────────────────────────────────────────────────────────────────────────────

AGENT = "prompt:agent/one"


@pytest.mark.parametrize(
    ("at_agent", "here", "followed", "places"),
    [
        (1, 10, 0, 1),
        (0, 10, 0, 0),
        (0, 10, 2, 2),  # what it has already needs no place there
        (1, 10, 2, 3),
        (5, 2, 2, 2),  # but one here
        (None, 10, 0, 10),  # nobody knows whom: whoever takes it says so
    ],
)
def test_an_agent_is_sent_what_it_takes(at_agent: int | None, here: int, followed: int, places: int) -> None:
    of = room(Limits(kinds={"prompt": here}), alone=True)
    target = ReadyTarget("a", AGENT)
    if at_agent is not None:
        of.limit_at(target, at_agent)
    found = places_for([target], of, kind_of, 1_000, {target: followed})
    assert found == ([(target, places)] if places else [])


def test_agents_of_two_namespaces_are_two_whatever_they_are_called() -> None:
    of = room(Limits(target=4), *[("b", AGENT)] * 4)
    assert of.free_for(seat("a", AGENT)) == 2
    of = room(Limits(target=4), *[("b", SLOW)] * 4)
    assert of.free_for(seat("a", SLOW)) == 0


def test_what_an_agent_has_already_is_taken_beside_what_it_has_room_for() -> None:
    of = room(alone=True)
    of.limit_at(ReadyTarget("a", AGENT), 1)
    waiting = [candidate("a", AGENT, number) for number in range(3)]
    begun = [candidate("a", AGENT, number)._replace(heard=True) for number in (7, 8)]
    assert chosen([*waiting, *begun], of) == [waiting[0], *begun]
    of.limit_at(ReadyTarget("a", AGENT), 0)
    assert chosen([*waiting, *begun], of) == begun
