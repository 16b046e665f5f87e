"""A row that somebody has damaged is marked, and no trouble of the others in a list."""

from __future__ import annotations

from io import StringIO
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from horarium.operations import tokens
from horarium.store.tables import approvals, schedule_revisions, schedules
from horarium.testing import TestService, service

DAMAGES = {
    "no JSON": '{"spec": ',
    "no object": "[1, 2]",
    "nothing in it": "{}",
    "parts that are none": '{"schedule_id": "b", "namespace": "default", "spec": 7, "action": [], "calendars": 5}',
    "a spec that is none": '{"schedule_id": "b", "spec": {"cron_expressions": 3}, "action": {"kind": "pull"}}',
}


def add(horarium: TestService, *names: str, **given: Any) -> None:
    for name in names:
        horarium.create(schedule_id=name, cron_expressions=["0 2 * * *"], workflow_type="report", **given)


def damage(horarium: TestService, name: str, text: str, revision: int | None = None) -> None:
    uid = sa.select(schedules.c.schedule_uid).where(schedules.c.schedule_id == name).scalar_subquery()
    mine = [schedule_revisions.c.schedule_uid == uid]
    if revision is not None:
        mine.append(schedule_revisions.c.revision == revision)
    change = sa.update(schedule_revisions).where(*mine).values(document=text)
    horarium.resources.database.write(lambda connection: connection.execute(change))


def test_a_definition_that_cannot_be_read_is_marked_and_the_rest_of_the_list_is_there(
    http: httpx.Client, horarium: TestService
) -> None:
    add(horarium, "a", "b", "c", calendars=["weekdays"])
    for name, text in DAMAGES.items():
        damage(horarium, "b", text)
        found = {each["schedule_id"]: each for each in http.get("/api/schedules").json()["schedules"]}
        assert sorted(found) == ["a", "b", "c"], name
        assert found["b"]["broken"].startswith("its definition cannot be read: "), name
        assert (found["b"]["status"], found["b"]["spec"], found["b"]["words"]) == ("active", {}, None)
        assert "broken" not in found["a"]
        assert found["a"]["words"]
        assert http.get("/api/schedules/b").json()["broken"] == found["b"]["broken"]
        obeying = http.get("/api/schedules", params={"calendar": "weekdays", "include": "recent"}).json()["schedules"]
        assert {"a", "c"} <= {each["schedule_id"] for each in obeying}


def test_a_revision_that_cannot_be_read_is_marked_among_the_others(http: httpx.Client, horarium: TestService) -> None:
    add(horarium, "a")
    for cron in ("0 3 * * *", "0 4 * * *"):
        http.patch("/api/schedules/a", json={"spec": {"cron_expressions": [cron]}}).raise_for_status()
    damage(horarium, "a", '{"spec": ', revision=2)
    newest, middle, oldest = http.get("/api/schedules/a/revisions").json()["revisions"]
    assert (middle["revision"], middle["document"], middle["broken"][:14]) == (2, {}, "it is no JSON:")
    assert [each["document"]["schedule_id"] for each in (newest, oldest)] == ["a", "a"]
    assert "broken" not in newest
    refused = http.get("/api/schedules/a/revisions/compare", params={"from": 2, "to": 3})
    assert (refused.status_code, list(refused.json()["errors"])) == (422, ["from"])
    assert http.get("/api/schedules/a/revisions/compare", params={"from": 1, "to": 3}).status_code == 200


@pytest.mark.parametrize("column", ["approvers", "requesters", "gates", "proposed"])
def test_a_question_that_cannot_be_read_is_marked_and_decided_by_nobody(
    http: httpx.Client, horarium: TestService, column: str
) -> None:
    add(horarium, "a", "b", approval_policy={"requires_approval": True})
    runs = {name: http.post(f"/api/schedules/{name}/trigger").json()["run_id"] for name in ("a", "b")}
    asked = {each["schedule_id"]: each["approval_id"] for each in http.get("/api/approvals").json()["approvals"]}
    change = sa.update(approvals).where(approvals.c.approval_id == bytes.fromhex(_hex(horarium, "a")))
    horarium.resources.database.write(lambda connection: connection.execute(change.values({column: "[oh"})))
    found = {each["schedule_id"]: each for each in http.get("/api/approvals").json()["approvals"]}
    assert found["a"]["broken"].startswith(f"{column}: ")
    assert "broken" not in found["b"]
    issued = tokens.issue(horarium.resources, horarium.caller, name="bob", role="operator", subject="bob")
    bob = horarium.http(token=issued.secret)
    said = {"decision": "approve"}
    assert bob.post(f"/api/approvals/{asked['a']}/decision", json=said).status_code == 409
    assert bob.post(f"/api/approvals/{asked['b']}/decision", json=said).status_code == 200
    assert http.post(f"/api/runs/{runs['a']}/cancel").status_code == 200


def _hex(horarium: TestService, schedule_id: str) -> str:
    of = sa.select(schedules.c.schedule_uid).where(schedules.c.schedule_id == schedule_id).scalar_subquery()
    asked = sa.select(approvals.c.approval_id).where(approvals.c.schedule_uid == of)
    found: bytes = horarium.resources.database.read(lambda connection: connection.execute(asked).scalar_one())
    return found.hex()


def test_it_is_logged_once_however_often_somebody_looks() -> None:
    log = StringIO()
    with service(log_to=log) as horarium:
        add(horarium, "a", "b")
        damage(horarium, "b", "[]")
        for _ in range(3):
            for path in ("", "/b", "/b/revisions"):
                horarium.http().get(f"/api/schedules{path}").raise_for_status()
    told = [line for line in log.getvalue().splitlines() if "a stored row cannot be read" in line]
    assert [("default/b 1" in line, "it is no JSON object" in line) for line in told] == [(False, True), (True, True)]
