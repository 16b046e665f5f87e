"""Retention: for how many days a namespace keeps its runs and its history, by its own word or by the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from horarium.policy.names import PolicyError, shown
from horarium.policy.quotas import DEFAULT

FOR_EVER: Final = 0
"""As it is kept; in documents it is null."""
MAX_DAYS: Final = 36_500


class Kept(StrEnum):
    RUNS = "keep_runs_days"  # with their events, lines and results
    HISTORY = "keep_history_days"  # decisions about occurrences


@dataclass(frozen=True, slots=True)
class Retention:
    """Days; `FOR_EVER`, or None for what the settings say."""

    keep_runs_days: int | None = None
    keep_history_days: int | None = None

    def in_force(self, settings: Retention) -> Retention:
        runs = settings.keep_runs_days if self.keep_runs_days is None else self.keep_runs_days
        history = settings.keep_history_days if self.keep_history_days is None else self.keep_history_days
        return Retention(runs or FOR_EVER, history or FOR_EVER)


def changed_retention(own: Retention, asked: object, field: str = "retention") -> Retention:
    """After a change: days, null for ever, or `default`. Raises PolicyError."""
    if not isinstance(asked, Mapping):
        raise PolicyError(field, f"must be an object, not {shown(asked)}")
    names = [kept.value for kept in Kept]
    changed: dict[str, int | None] = {}
    for name, value in asked.items():
        if name not in names:
            raise PolicyError(field, f"unknown key {shown(name)}; allowed: {', '.join(names)}")
        changed[name] = _days(value, f"{field}.{name}")
    return replace(own, **changed)


def _days(value: object, field: str) -> int | None:
    if value == DEFAULT:
        return None
    if value is None:
        return FOR_EVER
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_DAYS:
        raise PolicyError(field, f"must be 1 to {MAX_DAYS} days, null or {DEFAULT!r}, not {shown(value)}")
    return value
