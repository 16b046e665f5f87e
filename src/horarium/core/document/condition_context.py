"""Members of the context of a condition: the one list of them, and what can never be in it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import TypeAlias

from horarium.condition import Clause, Condition

_SHOWN = 64


class ContextMember(StrEnum):
    """The members of the context; each is looked up only where a clause can see it."""

    PRIOR_RUN_RESULT = "prior_run_result"
    LAST_24H_STATS = "last_24h_stats"
    SIGNAL_RPC_RESULT = "signal_rpc_result"


class DayCount(StrEnum):
    """The members of `last_24h_stats`."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TOTAL = "total"


class _Inside(Enum):
    ANYTHING = "anything"  # what a run or a provider answered
    NOTHING = "nothing"  # a plain value has no members


Shape: TypeAlias = "Mapping[str, Shape] | _Inside"

SHAPE: Mapping[str, Shape] = MappingProxyType(
    {
        ContextMember.PRIOR_RUN_RESULT.value: _Inside.ANYTHING,
        ContextMember.LAST_24H_STATS.value: MappingProxyType({each.value: _Inside.NOTHING for each in DayCount}),
        ContextMember.SIGNAL_RPC_RESULT.value: _Inside.ANYTHING,
    }
)


def never_there(condition: Condition) -> list[str]:
    """A sentence for each clause that points at what no context ever holds, with the nearest pointer that it may."""
    return [said for clause in condition.clauses if (said := _never(clause)) is not None]


def into_signal(condition: Condition) -> list[str]:
    """The pointers that find nothing where nobody says what signals are: the signal itself is there, and null."""
    member = ContextMember.SIGNAL_RPC_RESULT.value
    return [_shown(each.pointer) for each in condition.clauses if each.path[:1] == (member,) and len(each.path) > 1]


def is_context(value: object) -> bool:
    """Tell whether a document looks like the context of a schedule: it has members, and no others."""
    return isinstance(value, Mapping) and bool(value) and value.keys() <= SHAPE.keys()


def _never(clause: Clause) -> str | None:
    inside: Shape = SHAPE
    for depth, name in enumerate(clause.path):
        if inside is _Inside.ANYTHING:
            return None
        if inside is _Inside.NOTHING:
            return f"{_shown(clause.pointer)} never exists, because {_pointer(clause.path[:depth])} is a number"
        assert isinstance(inside, Mapping)  # the third kind of shape
        if name not in inside:
            return f"{_shown(clause.pointer)} never exists; {_hint(clause.path[:depth], name, inside)}"
        inside = inside[name]
    return None


def _hint(above: tuple[str, ...], name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name[:_SHOWN], known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {_pointer((*above, close[0]))}?"
    where = _pointer(above) if above else "the context"
    return f"{where} has {', '.join(known)}"


def _pointer(path: tuple[str, ...]) -> str:
    """Names of ours need no escapes."""
    return "".join(f"/{name}" for name in path)


def _shown(pointer: str) -> str:
    return repr(pointer if len(pointer) <= _SHOWN else f"{pointer[: _SHOWN - 3]}...")
