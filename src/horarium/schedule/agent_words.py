"""The words that an agent is described with; by themselves, so that whoever only names them reads no agent."""

from __future__ import annotations

from enum import StrEnum


class AgentProtocol(StrEnum):
    """Version of the A2A protocol."""

    AUTO = "auto"
    V0_3 = "0.3"
    V1_0 = "1.0"


class AgentSchedules(StrEnum):
    """Schedules of its workspace that an agent's own token may change and delete."""

    OWN = "own"  # those that were written through the workspace
    ALL = "all"
    NONE = "none"


class AgentContext(StrEnum):
    """Conversation of each run: a new one, or one shared by the runs of a schedule."""

    FRESH = "fresh"
    SCHEDULE = "schedule"
