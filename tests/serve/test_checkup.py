"""What `horarium doctor` finds in the database."""

from __future__ import annotations

import pytest
from world import FakeClock

from horarium.ids import id_at, new_id
from horarium.instant import MINUTE, SECOND, from_datetime
from horarium.serve.checkup import Level, examine
from horarium.store.tables import step_changes
from horarium.testing import Accepted, TestService


@pytest.mark.parametrize("answer", [Accepted(reference="brooms", queued=True)], ids=["queued"])
def test_runs_that_no_worker_takes_are_a_warning(horarium: TestService) -> None:
    action = {"workflow_type": "sweep", "task_queue": "brooms"}
    horarium.create(schedule_id="s", spec={"intervals": [{"every": "PT1H"}]}, action=action)
    horarium.advance(hours=1)

    def warnings(minutes: int) -> list[tuple[Level, str]]:
        born = from_datetime(horarium.runs()[0].created_at)
        found = examine(horarium.parts.settings, FakeClock(born + minutes * MINUTE))
        return [(check.level, check.found) for check in found if check.name == "queue"]

    assert warnings(4) == []
    [(level, found)] = warnings(6)
    assert level is Level.WARNING
    assert found.startswith("1 runs have waited for more than 5 minutes for a worker that knows 'sweep'")


def test_steps_whose_workflows_do_not_go_on_are_a_warning(horarium: TestService) -> None:
    ended = horarium.resources.clock.now()
    change = {"change_id": id_at(ended), "run_id": new_id(), "cost": 0, "tokens": 0, "tool_calls": 0, "finish": False}
    horarium.resources.database.write(lambda c: c.execute(step_changes.insert().values(**change)))

    def found(seconds: int) -> list[tuple[Level, str]]:
        checks = examine(horarium.parts.settings, FakeClock(ended + seconds * SECOND))
        return [(check.level, check.found) for check in checks if check.name == "workflows"]

    assert found(59) == []
    waits = "1 ends of steps have waited for more than a minute for their workflows to go on"
    assert found(61) == [(Level.WARNING, waits)]
