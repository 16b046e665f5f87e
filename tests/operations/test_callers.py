"""Who may do what: a table of roles and permissions, and whose work an agent sees."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from horarium.platform.caller import Caller, run_principal
from horarium.platform.ids import new_id
from horarium.platform.wire import Permission, Role

MAY = {
    Role.ADMIN: "look read write operate approve schedule run work administer",
    Role.OWNER: "look read write operate approve schedule run work",
    Role.OPERATOR: "look read operate approve run",
    Role.VIEWER: "look read",
    Role.AGENT: "look schedule run work",
}
RUN = new_id()


@dataclass(frozen=True)
class Run:
    run_id: bytes = RUN
    claimed_by: str | None = None
    assignee: str | None = None
    assignee_type: str | None = None
    member: str | None = None


@pytest.mark.parametrize("role", Role)
def test_each_role_has_its_permissions(role: Role) -> None:
    assert {each.value for each in Permission if Caller("x", role).may(each)} == set(MAY[role].split())


@pytest.mark.parametrize(
    ("principal", "run", "sees"),
    [
        ("ada", Run(), False),
        ("ada", Run(claimed_by="ada"), True),
        ("ada", Run(assignee="ada"), True),
        ("ada", Run(claimed_by="bob", assignee="ada"), True),
        ("ada", Run(claimed_by="bob"), False),
        ("ada", Run(claimed_by="ADA", assignee="ada2"), False),
        ("ada", Run(assignee="desk", assignee_type="team", member="ada"), True),
        ("ada", Run(assignee="ada", assignee_type="team", member="bob"), False),
        ("ada", Run(assignee="ada", assignee_type="agent"), True),
        (run_principal(RUN), Run(claimed_by="bob"), True),
        (run_principal(new_id()), Run(claimed_by="bob"), False),
        (None, Run(), False),
        ("", Run(claimed_by="", assignee=""), False),
    ],
    ids=["nobody's", "claimed", "assigned", "assigned and claimed by another", "claimed by another", "other names",
         "for its team", "of a team of that name", "assigned to an agent",
         "its own run", "another run", "no principal", "no name"],
)  # fmt: skip
def test_an_agent_sees_its_own_work(principal: str | None, run: Run, sees: bool) -> None:
    assert Caller(principal, Role.AGENT).sees(run) is sees
    assert Caller(principal, Role.VIEWER).sees(run)


def test_a_caller_takes_from_the_queues_that_its_credential_names() -> None:
    assert Caller("ada", Role.AGENT).takes_from("any")
    named = Caller("ada", Role.AGENT, queues=frozenset({"a"}))
    assert (named.takes_from("a"), named.takes_from("b")) == (True, False)
