"""What operations on agents, teams and assignments answer when they cannot; the tree is drawn in `errors.py`."""

from __future__ import annotations

from collections.abc import Sequence

from horarium.operations.errors import AlreadyExists, NotFound, Refused


class AgentNotFound(NotFound):
    reason = "agent_not_found"
    what = "agent"


class TeamNotFound(NotFound):
    reason = "team_not_found"
    what = "team"


class AssignmentNotFound(NotFound):
    reason = "assignment_not_found"
    what = "assignment"


class AgentAlreadyExists(AlreadyExists):
    reason = "agent_already_exists"
    what = "agent"


class TeamAlreadyExists(AlreadyExists):
    reason = "team_already_exists"
    what = "team"


class AssignmentAlreadyExists(AlreadyExists):
    reason = "assignment_already_exists"
    what = "assignment"


class AgentInUse(Refused):
    """`users` are those that name it, the first of them if they are many."""

    reason = "agent_in_use"

    def __init__(self, name: str, users: Sequence[str], way_out: str) -> None:
        super().__init__(_still_named("agent", name, users, way_out))
        self.users = tuple(users)


class TeamInUse(Refused):
    """`users` are those that name it, the first of them if they are many."""

    reason = "team_in_use"

    def __init__(self, name: str, users: Sequence[str], way_out: str) -> None:
        super().__init__(_still_named("team", name, users, way_out))
        self.users = tuple(users)


class AssignmentInUse(Refused):
    """`users` are those that name it, the first of them if they are many."""

    reason = "assignment_in_use"

    def __init__(self, name: str, users: Sequence[str], way_out: str) -> None:
        super().__init__(_still_named("assignment", name, users, way_out))
        self.users = tuple(users)


def _still_named(what: str, name: str, users: Sequence[str], way_out: str) -> str:
    shown = ", ".join(users[:5]) + (", …" if len(users) > 5 else "")
    return f"the {what} {name!r} is used by {shown}; {way_out}"
