"""Limits of a run, a day and a namespace, and retention.

Amounts are credits as `Decimal`, rounded to a millionth: sums stay exact, and an amount times 10^6 is
a whole number for a BIGINT column. Floats are read as they are printed, so 0.1 is a tenth.

Quotas bound what one namespace may have and start, so that no tenant takes what the others need. Quotas and
retention are those of the settings, unless a namespace has its own; None = no limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Context, Decimal
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, overload

from horarium.core.policy.queue import MAX_LONG, PolicyError, read_object, shown, texts, whole_number, whole_or_none

Amount: TypeAlias = Decimal | int
_Limit = TypeVar("_Limit", bound=Decimal | int)

LIMIT_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"max_daily_battles": "max_daily_runs", "runtime": "runtime_seconds", "max_tokens": "tokens"}
)

MAX_AMOUNT = 10**12
MILLIONTHS = 1_000_000
_MILLIONTH = Decimal("0.000001")
_AMOUNT_TEXT = re.compile(r"\d{1,13}(\.\d{1,6})?", re.ASCII)
# Our own context: the thread's may have any precision. 12 digits before the point and 6 after fit.
_EXACT = Context(prec=28)


def parse_amount(value: object, field: str) -> Decimal:
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
    return millionths_of(parse_amount(value, field))


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
    return own, {alias: name for alias, name in LIMIT_ALIASES.items() if name in own}


def _amount_or_none(field: str, value: object) -> Decimal | None:
    return None if value is None else parse_amount(value, field)


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
class LimitUsage:
    """Usage of a run so far; `runtime_seconds` are whole seconds, the begun one not counted."""

    runtime_seconds: int = 0
    cost: Amount = 0
    tokens: int = 0
    tool_calls: int = 0

    def __post_init__(self) -> None:
        whole_number("runtime_seconds", self.runtime_seconds)
        object.__setattr__(self, "cost", parse_amount(self.cost, "cost"))
        whole_number("tokens", self.tokens, most=MAX_LONG)
        whole_number("tool_calls", self.tool_calls, most=MAX_LONG)


def exceeded_limit(limits: RunLimits, usage: LimitUsage) -> str | None:
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


# ── Quotas ────────────────────────────────────────────────────────────────────────────────────────────


DEFAULT_QUOTA: Final = "default"
"""In place of a number: what the settings say."""

MAX_LIMIT: Final = 10**15
BYTES_OF_A_RUN: Final = 1_000
"""Bytes of a run with its events, history and indexes, in addition to its inputs and result."""
_PLENTY: Final = 2**60


class Quota(StrEnum):
    SCHEDULES = "schedules"  # live ones
    RUNS_PER_MINUTE = "runs_per_minute"  # born in one minute of the clock
    OPEN_RUNS = "open_runs"  # that have not ended
    BYTES_STORED = "bytes_stored"  # definitions, inputs, results, history
    SHORTEST_GAP_SECONDS = "shortest_gap_seconds"  # between two occurrences of one schedule


Overrides: TypeAlias = Mapping[str, int | None]
"""What a namespace has instead of the settings, by the names of quotas."""


@dataclass(frozen=True, slots=True)
class Quotas:
    """The limits of a namespace; the fields are named as the quotas."""

    schedules: int | None = 250_000
    runs_per_minute: int | None = 200_000
    open_runs: int | None = 200_000
    bytes_stored: int | None = 50_000_000_000
    shortest_gap_seconds: int | None = 1

    def limit(self, quota: Quota) -> int | None:
        found: int | None = getattr(self, quota.value)
        return found

    def with_own(self, own: Overrides) -> Quotas:
        """Apply overrides; a quota that no longer exists is left out."""
        known = {name: limit for name, limit in own.items() if name in frozenset(Quota)}
        return replace(self, **known) if known else self


class NamespaceUsage(NamedTuple):
    """Present usage of a namespace."""

    schedules: int = 0
    runs_this_minute: int = 0
    open_runs: int = 0
    bytes_stored: int = 0

    def of(self, quota: Quota) -> int | None:
        """None for what is asked of each schedule alone."""
        match quota:
            case Quota.SHORTEST_GAP_SECONDS:
                return None
            case Quota.RUNS_PER_MINUTE:
                return self.runs_this_minute
            case _:
                found: int = getattr(self, quota.value)
                return found


@dataclass(frozen=True, slots=True)
class QuotaExcess:
    """`used` is what there is already, `asked` what would come on top."""

    quota: Quota
    limit: int
    used: int
    asked: int = 1


@dataclass(frozen=True, slots=True)
class QuotaRoom:
    """Number of runs that may still be created, and the quota that is then used up."""

    births: int
    quota: Quota = Quota.RUNS_PER_MINUTE
    limit: int = _PLENTY
    used: int = 0

    def exceeded(self, born: int) -> QuotaExcess:
        """Describe the next run's excess after `born` of the runs that fit."""
        each = BYTES_OF_A_RUN if self.quota is Quota.BYTES_STORED else 1
        return QuotaExcess(self.quota, self.limit, self.used + born * each, each)


ROOM_WITHOUT_END: Final = QuotaRoom(_PLENTY)


def room_for_runs(limits: Quotas, usage: NamespaceUsage) -> QuotaRoom:
    """The quota that is used up first; of two that are, the first in the list."""
    found = ROOM_WITHOUT_END
    for quota in (Quota.RUNS_PER_MINUTE, Quota.OPEN_RUNS, Quota.BYTES_STORED):
        limit, used = limits.limit(quota), usage.of(quota)
        if limit is None or used is None:
            continue
        left = max(0, limit - used)
        births = left // BYTES_OF_A_RUN if quota is Quota.BYTES_STORED else left
        if births < found.births:
            found = QuotaRoom(births, quota, limit, used)
    return found


def definitions_exceed(limits: Quotas, usage: NamespaceUsage, *, schedules: int, size: int) -> QuotaExcess | None:
    """Find the quota that `schedules` new schedules and `size` bytes of definitions would exceed."""
    for quota, asked in ((Quota.SCHEDULES, schedules), (Quota.BYTES_STORED, size)):
        limit, used = limits.limit(quota), usage.of(quota) or 0
        if limit is not None and asked > 0 and used + asked > limit:
            return QuotaExcess(quota, limit, used, asked)
    return None


def gap_exceeds(limits: Quotas, shortest_gap: int | None) -> QuotaExcess | None:
    """`shortest_gap` is that of a spec, in seconds; None = it has no two occurrences."""
    limit = limits.shortest_gap_seconds
    if limit is None or shortest_gap is None or shortest_gap >= limit:
        return None
    return QuotaExcess(Quota.SHORTEST_GAP_SECONDS, limit, shortest_gap, shortest_gap)


def changed_quotas(own: Overrides, asked: object, field: str = "quotas") -> dict[str, int | None]:
    """The own limits of a namespace after a change: a number, null for no limit, or `default`. Raises PolicyError."""
    changed = dict(own)
    for name, value in _members(asked, field, [quota.value for quota in Quota]).items():
        if value == DEFAULT_QUOTA:
            changed.pop(name, None)
        else:
            changed[name] = _limit(value, f"{field}.{name}")
    return changed


def _members(asked: object, field: str, names: Sequence[str]) -> Mapping[str, object]:
    """Null means something here, so it is kept."""
    if not isinstance(asked, Mapping):
        raise PolicyError(field, f"must be an object, not {shown(asked)}")
    for name in asked:
        if name not in names:
            raise PolicyError(field, f"unknown key {shown(name)}; allowed: {', '.join(names)}")
    return asked


def _limit(value: object, field: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_LIMIT:
        raise PolicyError(field, f"must be an integer up to {MAX_LIMIT}, null or {DEFAULT_QUOTA!r}, not {shown(value)}")
    return value


# ── Retention ─────────────────────────────────────────────────────────────────────────────────────────


FOR_EVER: Final = 0
"""As it is kept; in documents it is null."""
MAX_DAYS: Final = 36_500


class RetentionSubject(StrEnum):
    RUNS = "keep_runs_days"  # with their events, lines and results
    HISTORY = "keep_history_days"  # decisions about occurrences


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """Days; `FOR_EVER`, or None for what the settings say."""

    keep_runs_days: int | None = None
    keep_history_days: int | None = None

    def in_force(self, settings: RetentionPolicy) -> RetentionPolicy:
        runs = settings.keep_runs_days if self.keep_runs_days is None else self.keep_runs_days
        history = settings.keep_history_days if self.keep_history_days is None else self.keep_history_days
        return RetentionPolicy(runs or FOR_EVER, history or FOR_EVER)


def changed_retention(own: RetentionPolicy, asked: object, field: str = "retention") -> RetentionPolicy:
    """After a change: days, null for ever, or `default`. Raises PolicyError."""
    if not isinstance(asked, Mapping):
        raise PolicyError(field, f"must be an object, not {shown(asked)}")
    names = [kept.value for kept in RetentionSubject]
    changed: dict[str, int | None] = {}
    for name, value in asked.items():
        if name not in names:
            raise PolicyError(field, f"unknown key {shown(name)}; allowed: {', '.join(names)}")
        changed[name] = _days(value, f"{field}.{name}")
    return replace(own, **changed)


def _days(value: object, field: str) -> int | None:
    if value == DEFAULT_QUOTA:
        return None
    if value is None:
        return FOR_EVER
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_DAYS:
        raise PolicyError(field, f"must be 1 to {MAX_DAYS} days, null or {DEFAULT_QUOTA!r}, not {shown(value)}")
    return value
