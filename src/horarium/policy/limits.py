"""Limits: what may be spent and started in a day, and what a single run may use.

Amounts are credits as `Decimal`, rounded to a millionth: sums stay exact, and an amount times 10^6 is
a whole number for a BIGINT column. Floats are read as they are printed, so 0.1 is a tenth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from decimal import Context, Decimal
from functools import cache
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar, overload

from horarium.policy.names import MAX_LONG, PolicyError, read_object, shown, texts, whole_number, whole_or_none

Amount: TypeAlias = Decimal | int
_Limit = TypeVar("_Limit", bound=Decimal | int)

ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"max_daily_battles": "max_daily_runs", "runtime": "runtime_seconds", "max_tokens": "tokens"}
)

MAX_AMOUNT = 10**12
MILLIONTHS = 1_000_000
_MILLIONTH = Decimal("0.000001")
_AMOUNT_TEXT = re.compile(r"\d{1,13}(\.\d{1,6})?", re.ASCII)
# Our own context: the thread's may have any precision. 12 digits before the point and 6 after fit.
_EXACT = Context(prec=28)


def parse(value: object, field: str) -> Decimal:
    """An amount of credits from a JSON number or a Decimal."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise PolicyError(field, f"must be a number of credits, not {shown(value)}")
    number = Decimal(repr(value)) if isinstance(value, float) else value
    if isinstance(number, Decimal) and not number.is_finite():
        raise PolicyError(field, "must be a finite number")
    if not 0 <= number <= MAX_AMOUNT:
        raise PolicyError(field, f"must be between 0 and {MAX_AMOUNT}")
    return Decimal(number).quantize(_MILLIONTH, context=_EXACT)


def with_exact_amount(given: Mapping[str, object], field: str) -> dict[str, object]:
    """An amount that no JSON number says exactly is written as text."""
    value = given.get(field)
    if not isinstance(value, str):
        return dict(given)
    if _AMOUNT_TEXT.fullmatch(value) is None:
        raise PolicyError(field, f"must be a number of credits, not {shown(value)}")
    return {**given, field: Decimal(value)}


def millionths(value: object, field: str) -> int:
    """An amount as a BIGINT column keeps it."""
    return millionths_of(parse(value, field))


@overload
def millionths_of(amount: Amount) -> int: ...
@overload
def millionths_of(amount: Amount | None) -> int | None: ...
def millionths_of(amount: Amount | None) -> int | None:
    return None if amount is None else int(amount * MILLIONTHS)


@overload
def credits_of(millionths: int) -> Decimal: ...
@overload
def credits_of(millionths: int | None) -> Decimal | None: ...
def credits_of(millionths: int | None) -> Decimal | None:
    """The amount that a BIGINT column holds."""
    return None if millionths is None else Decimal(millionths) / MILLIONTHS


@cache
def _keys(kind: type[Budget] | type[RunLimits]) -> tuple[tuple[str, ...], dict[str, str]]:
    own = tuple(each.name for each in fields(kind))
    return own, {alias: name for alias, name in ALIASES.items() if name in own}


def _amount_or_none(field: str, value: object) -> Decimal | None:
    return None if value is None else parse(value, field)


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits for one UTC day; None = no limit, 0 = nothing."""

    spending_limit_credits: Amount | None = None
    max_daily_runs: int | None = None

    def __post_init__(self) -> None:
        limit = _amount_or_none("spending_limit_credits", self.spending_limit_credits)
        object.__setattr__(self, "spending_limit_credits", limit)
        whole_or_none("max_daily_runs", self.max_daily_runs)


def parse_budget(value: object) -> Budget:
    given: dict[str, Any] = read_object(value, "budget", *_keys(Budget))
    return Budget(**given)


def budget_allows(limit: Amount | None, *, spent: Amount, reserve: Amount) -> bool:
    """`reserve` is what the new run may cost; a limit that is used up refuses even a free run."""
    return limit is None or (spent < limit and spent + reserve <= limit)


def daily_allows(limit: int | None, *, runs_today: int) -> bool:
    return limit is None or runs_today < limit


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits for one run; None = no limit, an empty `allow_tools` = no tool at all."""

    runtime_seconds: int | None = None
    cost: Amount | None = None
    tokens: int | None = None
    tool_calls: int | None = None
    allow_tools: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        whole_or_none("runtime_seconds", self.runtime_seconds, least=1)
        object.__setattr__(self, "cost", _amount_or_none("cost", self.cost))
        whole_or_none("tokens", self.tokens, most=MAX_LONG)
        whole_or_none("tool_calls", self.tool_calls, most=MAX_LONG)
        if self.allow_tools is not None:
            if not isinstance(self.allow_tools, tuple):
                raise PolicyError("allow_tools", "must be a tuple of strings")
            texts("allow_tools", self.allow_tools, most=1_000)

    def allows_tool(self, tool: str) -> bool:
        return self.allow_tools is None or tool in self.allow_tools


def parse_limits(value: object) -> RunLimits:
    given: dict[str, Any] = read_object(value, "limits", *_keys(RunLimits))
    if "allow_tools" in given:
        given["allow_tools"] = texts("allow_tools", given["allow_tools"], most=1_000)
    return RunLimits(**given)


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of a run so far; `runtime_seconds` are whole seconds, the begun one not counted."""

    runtime_seconds: int = 0
    cost: Amount = 0
    tokens: int = 0
    tool_calls: int = 0

    def __post_init__(self) -> None:
        whole_number("runtime_seconds", self.runtime_seconds)
        object.__setattr__(self, "cost", parse(self.cost, "cost"))
        whole_number("tokens", self.tokens, most=MAX_LONG)
        whole_number("tool_calls", self.tool_calls, most=MAX_LONG)


def exceeded(limits: RunLimits, usage: Usage) -> str | None:
    """The cause that ends the run, or None; time is up when it is reached, all else when it is passed."""
    if limits.runtime_seconds is not None and usage.runtime_seconds >= limits.runtime_seconds:
        return "runtime_cap"
    if limits.cost is not None and usage.cost > limits.cost:
        return "cost_cap"
    if limits.tokens is not None and usage.tokens > limits.tokens:
        return "tokens_cap"
    if limits.tool_calls is not None and usage.tool_calls > limits.tool_calls:
        return "tool_calls_cap"
    return None


def merge_limits(*limits: RunLimits) -> RunLimits:
    """The strictest of each; a tool must be allowed by all who list tools."""
    return RunLimits(
        runtime_seconds=_least(each.runtime_seconds for each in limits),
        cost=_least(each.cost for each in limits),
        tokens=_least(each.tokens for each in limits),
        tool_calls=_least(each.tool_calls for each in limits),
        allow_tools=_common_tools(limits),
    )


def _least(values: Iterable[_Limit | None]) -> _Limit | None:
    return min((value for value in values if value is not None), default=None)


def _common_tools(limits: Iterable[RunLimits]) -> tuple[str, ...] | None:
    lists = [each.allow_tools for each in limits if each.allow_tools is not None]
    return tuple(tool for tool in lists[0] if all(tool in each for each in lists)) if lists else None
