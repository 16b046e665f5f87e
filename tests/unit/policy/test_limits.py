"""What may be spent and started in a day, and what one run may use."""

import time
from decimal import Decimal
from typing import Any

import pytest

from horarium.core.policy.limits import (
    MAX_AMOUNT,
    Budget,
    LimitUsage,
    RunLimits,
    budget_allows,
    daily_allows,
    exceeded_limit,
    merge_limits,
    parse_amount,
    parse_budget,
    parse_limits,
)
from horarium.core.policy.queue import PolicyError


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        (0, "0"),
        (5, "5"),
        (0.1, "0.1"),
        (0.1 + 0.2, "0.3"),
        (1e-7, "0"),
        (Decimal("1.2345675"), "1.234568"),
        (MAX_AMOUNT, str(MAX_AMOUNT)),
    ],
    ids=str,
)
def test_an_amount_is_exact_to_a_millionth(value, amount):
    assert parse_amount(value, "cost") == Decimal(amount)


@pytest.mark.parametrize(
    "value",
    [
        -1,
        -0.001,
        MAX_AMOUNT + 1,
        10**100_000,
        Decimal("1e999999"),
        float("nan"),
        float("inf"),
        Decimal("sNaN"),
        Decimal("-Infinity"),
        True,
        "5",
        None,
        [],
    ],
    ids=lambda value: "huge" if isinstance(value, int) and value > MAX_AMOUNT + 1 else repr(value),
)
def test_anything_else_is_no_amount(value):
    began = time.process_time()
    with pytest.raises(PolicyError) as caught:
        parse_amount(value, "cost")
    assert time.process_time() - began < 0.5
    assert caught.value.field == "cost"


@pytest.mark.parametrize(
    ("limit", "spent", "reserve", "allowed"),
    [
        (None, 10**9, 10**9, True),
        (0, 0, 0, False),
        (10, 0, 0, True),
        (10, 9, 1, True),
        (10, 9, 2, False),
        (10, 10, 0, False),
        (10, 11, 0, False),
        (10, 0, 10, True),
        (Decimal("0.3"), Decimal("0.1"), Decimal("0.2"), True),
        (Decimal("0.3"), Decimal("0.1"), Decimal("0.200001"), False),
    ],
    ids=str,
)
def test_a_budget_allows_what_fits_in_it(limit, spent, reserve, allowed):
    assert budget_allows(limit, spent=spent, reserve=reserve) is allowed


@pytest.mark.parametrize(
    ("limit", "today", "allowed"), [(None, 10**9, True), (0, 0, False), (2, 1, True), (2, 2, False)]
)
def test_a_day_allows_as_many_runs_as_its_limit(limit, today, allowed):
    assert daily_allows(limit, runs_today=today) is allowed


CAPS = [
    (RunLimits(runtime_seconds=10), LimitUsage(runtime_seconds=9), None),
    (RunLimits(runtime_seconds=10), LimitUsage(runtime_seconds=10), "runtime_cap"),
    (RunLimits(cost=1), LimitUsage(cost=1), None),
    (RunLimits(cost=1), LimitUsage(cost=Decimal("1.000001")), "cost_cap"),
    (RunLimits(cost=0), LimitUsage(cost=0), None),
    (RunLimits(tokens=100), LimitUsage(tokens=100), None),
    (RunLimits(tokens=100), LimitUsage(tokens=101), "tokens_cap"),
    (RunLimits(tool_calls=0), LimitUsage(tool_calls=0), None),
    (RunLimits(tool_calls=0), LimitUsage(tool_calls=1), "tool_calls_cap"),
    (RunLimits(), LimitUsage(10**6, 10**6, 10**6, 10**6), None),
    (RunLimits(1, 0, 0, 0), LimitUsage(1, 1, 1, 1), "runtime_cap"),
]


@pytest.mark.parametrize(
    ("limits", "usage", "cause"), CAPS, ids=[f"{row[2]} {number}" for number, row in enumerate(CAPS)]
)
def test_a_run_ends_with_the_cap_it_passed(limits, usage, cause):
    assert exceeded_limit(limits, usage) == cause


def test_every_cap_has_a_row():
    causes = {row[2] for row in CAPS} - {None}
    assert causes == {"runtime_cap", "cost_cap", "tokens_cap", "tool_calls_cap"}


def test_the_strictest_limit_wins():
    schedule = RunLimits(
        runtime_seconds=60, cost=Decimal("0.5"), tokens=None, tool_calls=9, allow_tools=("b", "a", "c")
    )
    agent = RunLimits(runtime_seconds=30, cost=1, tokens=100, tool_calls=None, allow_tools=("a", "b"))
    strictest = RunLimits(30, Decimal("0.5"), 100, 9, ("b", "a"))
    assert merge_limits(schedule, agent) == strictest
    assert merge_limits(schedule, RunLimits()) == schedule
    assert merge_limits() == RunLimits()


def test_a_limit_of_nothing_survives_a_merge():
    assert merge_limits(RunLimits(cost=0, allow_tools=()), RunLimits(cost=5, allow_tools=("a",))) == RunLimits(
        cost=0, allow_tools=()
    )


def test_tools_are_free_unless_listed():
    assert RunLimits().allows_tool("any") is True
    assert RunLimits(allow_tools=()).allows_tool("any") is False
    assert RunLimits(allow_tools=("a",)).allows_tool("a") is True
    assert RunLimits(allow_tools=("a",)).allows_tool("b") is False


@pytest.mark.parametrize(
    ("build", "settings", "field"),
    [
        (Budget, {"spending_limit_credits": -1}, "spending_limit_credits"),
        (Budget, {"spending_limit_credits": True}, "spending_limit_credits"),
        (Budget, {"max_daily_runs": -1}, "max_daily_runs"),
        (RunLimits, {"runtime_seconds": 0}, "runtime_seconds"),
        (RunLimits, {"cost": float("nan")}, "cost"),
        (RunLimits, {"tokens": 1.0}, "tokens"),
        (RunLimits, {"tool_calls": -1}, "tool_calls"),
        (RunLimits, {"allow_tools": ["a"]}, "allow_tools"),
        (RunLimits, {"allow_tools": ("",)}, "allow_tools"),
        (LimitUsage, {"runtime_seconds": -1}, "runtime_seconds"),
        (LimitUsage, {"cost": None}, "cost"),
        (LimitUsage, {"tokens": 2**63}, "tokens"),
        (LimitUsage, {"tool_calls": False}, "tool_calls"),
    ],
    ids=str,
)
def test_invalid_limits_cannot_be_built(build, settings, field):
    with pytest.raises(PolicyError) as caught:
        build(**settings)
    assert caught.value.field == field


def test_amounts_are_kept_as_decimals_however_they_are_given():
    tenth: Any = 0.1  # a float is not what the type says, and is taken all the same
    assert Budget(tenth).spending_limit_credits == Decimal("0.1")
    assert RunLimits(cost=tenth).cost == Decimal("0.1")
    assert LimitUsage(cost=tenth).cost == Decimal("0.1")


@pytest.mark.parametrize("key", ["max_daily_runs", "maxDailyRuns", "max_daily_battles", "maxDailyBattles"])
def test_a_budget_is_read_under_both_vocabularies(key):
    assert parse_budget({key: 4, "spendingLimitCredits": 2.5}) == Budget(Decimal("2.5"), 4)


def test_limits_are_read_with_their_aliases():
    assert parse_limits({}) == RunLimits()
    assert parse_limits(
        {"runtime": 5, "cost": 0, "maxTokens": 7, "toolCalls": 8, "allowTools": ["a", "a"]}
    ) == RunLimits(5, 0, 7, 8, ("a",))
    assert parse_limits({"allow_tools": []}).allow_tools == ()


@pytest.mark.parametrize(
    ("read", "document", "field"),
    [
        (parse_budget, {"max_daily_runs": "1"}, "max_daily_runs"),
        (parse_budget, {"runtime": 1}, "runtime"),
        (parse_budget, {"max_daily_runs": 1, "max_daily_battles": 1}, "max_daily_runs"),
        (parse_budget, 5, "budget"),
        (parse_limits, {"max_daily_battles": 1}, "max_daily_battles"),
        (parse_limits, {"allow_tools": "a"}, "allow_tools"),
        (parse_limits, {"runtime_seconds": 0}, "runtime_seconds"),
        (parse_limits, None, "limits"),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_a_wrong_object_is_refused_by_its_key(read, document, field):
    with pytest.raises(PolicyError) as caught:
        read(document)
    assert caught.value.field == field
