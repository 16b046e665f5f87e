"""How an agent says that there is news of a run: whoever follows the run asks it at once, and believes nothing else."""

from __future__ import annotations

from horarium.ids import id_text
from horarium.life.report_token import Fence
from horarium.operations.caller import Caller
from horarium.operations.resources import Resources
from horarium.operations.runs import find_run
from horarium.schedule.run import FINAL
from horarium.store.database.channels import PUSHED
from horarium.store.runs.read import RunRow
from horarium.wire.roles import Permission


def push(resources: Resources, caller: Caller, run_id: str, token: str | None = None) -> None:
    """Raises RunNotFound. What comes too late, or from an attempt that is over, wakes nobody."""
    caller.require(Permission.WORK)
    row = resources.database.glance(lambda connection: find_run(connection, caller, run_id))
    fence = None if token is None else resources.tokens.fence_of_push(token, row.run_id)
    if wakes(row, fence):
        name = id_text(row.run_id)
        resources.database.write(lambda connection: resources.database.notify(connection, PUSHED, name))


def wakes(row: RunRow, fence: Fence | None) -> bool:
    """A task that has stopped to ask goes on under the same name, and may go on to use what it was handed first."""
    if row.state in FINAL:
        return False
    return fence is None or (fence.attempt == row.attempt and fence.gates_passed <= row.gates_passed)
