"""What an answer of the service means for the reports that were sent: delivered, in vain, or to be sent again.

| the service says              | to several reports    | to one alone              |
|-------------------------------|-----------------------|---------------------------|
| an outcome for each           | delivered, or refused | delivered, or refused     |
| 400, 413, 422                 | half of them are sent | refused                   |
| 401, to the tokens of runs    | half of them are sent | refused                   |
| 401, 403, to a token of ours  | later                 | later                     |
| anything else, or nothing     | later                 | later                     |

What is refused will not be taken the next time either, so it is given up, and told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from horarium.client.errors import ClientError, RateLimited, ServerUnavailable
from horarium.features.runs.model import RunReportOutcome
from horarium.policy.retry import backoff, unit_hash

_BASE_MS, _LONGEST_MS = 500, 30_000
# Whoever is told to come again next year comes again in a while all the same.
_LONGEST_WISH_SECONDS = 300.0
_UNREADABLE = frozenset({400, 413, 422})
_TAKEN = range(200, 300)
_REFUSED = range(400, 500)


@dataclass(frozen=True, slots=True)
class Taken:
    """The first `count` need not be sent again; `refused` are the places of those that were in vain, and why."""

    count: int
    refused: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Halve:
    """One of them keeps the others from being read."""


@dataclass(frozen=True, slots=True)
class Later:
    why: str
    least_seconds: float = 0.0


Verdict: TypeAlias = Taken | Halve | Later


def judge(sent: int, answer: Sequence[RunReportOutcome] | ClientError, *, with_token: bool) -> Verdict:
    """`with_token`: whoever sent them has a token of its own, and did not rely on those of the runs."""
    if not isinstance(answer, ClientError):
        return _of_each(sent, answer)
    if isinstance(answer, RateLimited | ServerUnavailable):
        return Later(answer.message, min(answer.retry_after or 0.0, _LONGEST_WISH_SECONDS))
    alone = answer.status in _UNREADABLE or (
        answer.status == 401 and answer.body.get("reason") == "unauthorized" and not with_token
    )
    if not alone:
        return Later(answer.message)
    return Halve() if sent > 1 else Taken(1, ((0, answer.message),))


def _of_each(sent: int, outcomes: Sequence[RunReportOutcome]) -> Verdict:
    """They are delivered in order: what comes after one that must be sent again is sent again, too."""
    if len(outcomes) != sent:
        return Later(f"received {len(outcomes)} outcomes for {sent} reports")
    refused = []
    for place, each in enumerate(outcomes):
        if each.status in _REFUSED and each.status != 429:
            refused.append((place, f"{each.reason}: {each.message}"))
        elif each.status not in _TAKEN:
            why = f"{each.reason}: {each.message}"
            return Taken(place, tuple(refused)) if place else Later(why)
    return Taken(sent, tuple(refused))


def pause_seconds(failures: int, least_seconds: float, key: str) -> float:
    """Before the next try, after so many failures in a row: half a second at first, half a minute at last."""
    return max(least_seconds, backoff(_BASE_MS, _LONGEST_MS, failures, unit_hash(key, failures)) / 1_000)
