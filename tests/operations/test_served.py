"""A schedule whose action nobody can do yet is written all the same, and its author is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from operations.desks import ADMIN, NOON, Office

from horarium.audience import EVERYBODY, USUAL
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules.creation import ScheduleChange
from horarium.instant import SECOND
from horarium.launchers.pull import PullLauncher
from horarium.launchers.python import PythonLauncher
from horarium.launchers.registry import Registry, Served
from horarium.launchers.tasks import TaskRegistry
from horarium.platform.database import processes
from horarium.platform.database.processes import SERVES
from horarium.platform.wire import WriteOutcome

PROMPT = {"kind": "prompt", "prompt": "hello"}
TASK = {"kind": "python", "task": "count"}
ELSEWHERE = Served({"prompt": EVERYBODY, "python": EVERYBODY}, {"python": {"count": USUAL}})


@pytest.fixture
def staffed(office: Office) -> Office:
    """A process that knows the task `report` and the pull queue."""
    tasks = TaskRegistry()
    tasks.add(print, name="report")
    registry = Registry([PythonLauncher(tasks, office.clock), PullLauncher(office.clock)])
    office.resources = replace(office.resources, registry=registry)
    return office


def publish(office: Office, served: Served | None = ELSEWHERE, *, seconds_ago: int = 0) -> None:
    info: dict[str, Any] = {} if served is None else {SERVES: served.document()}
    beat_at = office.clock.now() - seconds_ago * SECOND
    office.resources.database.write(lambda c: processes.beat_lease(c, "process:other", "other", beat_at, 30, info))


def about_action(written: ScheduleChange) -> list[str]:
    """A prompt without an agent has a warning of its own."""
    return [each for each in written.warnings if each.startswith("action.")]


@pytest.mark.parametrize(
    ("action", "begins"),
    [
        (PROMPT, "action.kind: no running process executes prompt actions"),
        (TASK, "action.task: no running process has 'count'"),
        ({"workflow_type": "unheard-of"}, "action.workflow_type: no task or stored workflow is named 'unheard-of'"),
    ],
    ids=["kind", "task", "workflow"],
)
def test_what_nobody_can_do_is_written_with_a_warning(staffed: Office, action: dict[str, Any], begins: str) -> None:
    written = staffed.create(action=action)
    assert written.outcome is WriteOutcome.CREATED
    [warning] = about_action(written)
    assert warning.startswith(begins)


@pytest.mark.parametrize("action", [{"workflow_type": "report"}, {"kind": "python", "task": "report"}], ids=str)
def test_what_this_process_can_do_is_written_without(staffed: Office, action: dict[str, Any]) -> None:
    assert staffed.create(action=action).warnings == ()


@pytest.mark.parametrize("action", [PROMPT, TASK], ids=["kind", "task"])
def test_another_process_that_is_alive_may_do_it(staffed: Office, action: dict[str, Any]) -> None:
    publish(staffed)
    assert about_action(staffed.create(action=action)) == []


def test_a_process_that_is_silent_does_nothing_any_more(staffed: Office) -> None:
    publish(staffed, seconds_ago=31)
    assert len(about_action(staffed.create(action=PROMPT))) == 1


def test_a_process_that_does_not_say_what_it_can_do_is_not_counted_on(staffed: Office) -> None:
    publish(staffed, None)
    assert len(about_action(staffed.create(action=PROMPT))) == 1


def test_a_process_that_starts_is_seen_a_second_later(staffed: Office) -> None:
    assert len(about_action(staffed.create("first", action=PROMPT))) == 1
    staffed.clock.move(1)
    publish(staffed)
    assert about_action(staffed.create("second", action=PROMPT)) == []


def test_an_edit_of_the_action_is_warned_about_and_no_other(staffed: Office) -> None:
    staffed.create(action={"workflow_type": "report"})
    changed = schedule_service.update(staffed.resources, ADMIN, "nightly", {"action": {"workflow_type": "x"}})
    assert (changed.outcome, len(changed.warnings)) == (WriteOutcome.UPDATED, 1)
    noted = schedule_service.update(staffed.resources, ADMIN, "nightly", {"note": "n"})
    assert (noted.outcome, noted.warnings) == (WriteOutcome.UPDATED, ())
    again = schedule_service.update(staffed.resources, ADMIN, "nightly", {"action": {"workflow_type": "x"}})
    assert (again.outcome, again.warnings) == (WriteOutcome.UNCHANGED, ())


def test_where_no_launchers_are_known_nobody_is_warned(office: Office) -> None:
    assert office.clock.now() == NOON
    assert about_action(office.create(action=PROMPT)) == []
