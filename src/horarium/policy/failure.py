"""Failure: what a step that has failed for good does to the rest of its workflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, TypeAlias, assert_never

from horarium.policy.names import PolicyError, parse_name, read_object, text


class FailureMode(StrEnum):
    ISOLATE = "isolate"
    HALT = "halt"
    FALLBACK = "fallback"


ALIASES: Final[Mapping[str, FailureMode]] = MappingProxyType({})


def parse(value: object, field: str = "mode") -> FailureMode:
    return parse_name(FailureMode, ALIASES, value, field)


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    mode: FailureMode = FailureMode.ISOLATE
    fallback_assignee_id: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.mode, FailureMode):
            raise PolicyError("mode", "must be a FailureMode")
        if self.fallback_assignee_id is not None:
            text("fallback_assignee_id", self.fallback_assignee_id)
        elif self.mode is FailureMode.FALLBACK:
            raise PolicyError("fallback_assignee_id", "is required when mode is fallback")


def parse_failure_policy(value: object) -> FailurePolicy:
    given: dict[str, Any] = read_object(value, "failure_policy", ("mode", "fallback_assignee_id"))
    if "mode" in given:
        given["mode"] = parse(given["mode"])
    return FailurePolicy(**given)


@dataclass(frozen=True, slots=True)
class SkipDependants:
    """Steps that need the failed one are skipped; its siblings go on."""


@dataclass(frozen=True, slots=True)
class HaltRun:
    """Stop steps that have not started, and cancel those that run."""


@dataclass(frozen=True, slots=True)
class Reassign:
    """The step is tried by another assignee."""

    assignee_id: str


FailureOutcome: TypeAlias = SkipDependants | HaltRun | Reassign


def on_step_failure(policy: FailurePolicy, *, already_fallen_back: bool) -> FailureOutcome:
    """Asked after the retries; a fallback that fails too is isolated."""
    match policy.mode:
        case FailureMode.ISOLATE:
            return SkipDependants()
        case FailureMode.HALT:
            return HaltRun()
        case FailureMode.FALLBACK:
            if already_fallen_back or policy.fallback_assignee_id is None:
                return SkipDependants()
            return Reassign(policy.fallback_assignee_id)
        case _:
            assert_never(policy.mode)
