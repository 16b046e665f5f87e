"""Who may schedule a workflow is asked again when it fires: it may belong to somebody else by then."""

from __future__ import annotations

import httpx
import pytest
import sqlalchemy as sa

from horarium.platform.database.tables import workflows
from horarium.testing import Finished, TestService

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


@pytest.fixture
def answer() -> Finished:
    return Finished()


def store(horarium: TestService, version: int, owner: str | None) -> None:
    """As putting a workflow will do."""
    row = {"namespace": "default", "workflow_id": "payroll", "version": version, "document": "{}", "created_at": 0}
    horarium.parts.database.write(lambda c: c.execute(sa.insert(workflows).values(**row, owner=owner)))


def door(horarium: TestService, name: str) -> httpx.Client:
    issued = horarium.http().post("/api/tokens", json={"name": name, "role": "owner"}).json()
    return horarium.http(token=issued["secret"])


def write(http: httpx.Client, schedule_id: str) -> int:
    action = {"kind": "workflow", "workflow_id": "payroll"}
    document = {"schedule_id": schedule_id, "cron_expressions": ["0 * * * *"], "action": action}
    return http.post("/api/schedules/upsert", json=document).status_code


def last(horarium: TestService, schedule_id: str) -> str:
    event = horarium.history(schedule_id)[-1]
    return str(event.payload.get("reason") or event.event_type)


def test_a_workflow_that_changed_hands_runs_for_its_new_owner_only(horarium: TestService) -> None:
    ada, eve = door(horarium, "ada"), door(horarium, "eve")
    store(horarium, 1, "ada")
    assert (write(ada, "hers"), write(eve, "stolen"), write(horarium.http(), "admins")) == (201, 403, 201)
    horarium.advance(hours=1)
    assert [last(horarium, each) for each in ("hers", "admins")] == ["ScheduleTriggered"] * 2
    store(horarium, 2, "eve")
    horarium.advance(hours=1)
    assert [last(horarium, each) for each in ("hers", "admins")] == ["not_the_owner"] * 2
    by_hand = ada.post("/api/schedules/hers/trigger").json()
    assert (by_hand["outcome"], by_hand["reason"]) == ("skipped", "not_the_owner")
    # Whoever may schedule it says so again: an admin, or the new owner for a schedule of its own.
    assert horarium.http().put("/api/schedules/admins", json={"note": "checked", "name": "checked"}).status_code == 200
    assert write(eve, "new") == 201
    horarium.advance(hours=1)
    assert [last(horarium, each) for each in ("admins", "new", "hers")] == ["ScheduleTriggered"] * 2 + ["not_the_owner"]


def test_a_name_that_somebody_else_takes_later_does_not_run_for_whoever_wrote_it_before(horarium: TestService) -> None:
    ada = door(horarium, "ada")
    assert write(ada, "first") == 201  # nobody has stored it: a worker may know it
    store(horarium, 1, "eve")
    horarium.advance(hours=1)
    assert last(horarium, "first") == "not_the_owner"
    store(horarium, 2, "ada")
    horarium.advance(hours=1)
    assert last(horarium, "first") == "ScheduleTriggered"
