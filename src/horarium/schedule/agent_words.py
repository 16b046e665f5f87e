"""The words that an agent is described with; by themselves, so that whoever only names them reads no agent."""

from __future__ import annotations

from enum import StrEnum


class AgentProtocol(StrEnum):
    """Of the A2A protocol: which generation it speaks."""

    AUTO = "auto"
    V0_3 = "0.3"
    V1_0 = "1.0"


class AgentSchedules(StrEnum):
    """The schedules of its workspace that an agent's own token may change and delete."""

    OWN = "own"  # those that were written through the workspace
    ALL = "all"
    NONE = "none"


class AgentContext(StrEnum):
    """Whether each run begins a new conversation, or those of a schedule share one."""

    FRESH = "fresh"
    SCHEDULE = "schedule"
