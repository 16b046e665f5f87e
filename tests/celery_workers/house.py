"""What a caller does with runs that Celery executes, over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.house import House, name


def schedule(house: House, task: str, args: Sequence[Any] = (), **fields: Any) -> str:
    """The id of a new schedule for a task; `queue`, `kwargs` and `timeout_seconds` belong to its action."""
    own = {each: fields.pop(each) for each in ("queue", "kwargs", "timeout_seconds") if each in fields}
    schedule_id = name("task")
    document = {
        "schedule_id": schedule_id,
        "cron_expressions": ["0 0 1 1 *"],
        "action": {"kind": "celery", "task": task, "args": list(args), **own},
        "overlap_policy": "allow_all",
        **fields,
    }
    house.ask("POST", "/api/schedules", document)
    return schedule_id


def start(house: House, task: str, args: Sequence[Any] = (), **fields: Any) -> str:
    """The id of a run of a task, once."""
    return house.trigger(schedule(house, task, args, **fields))


def task_id(house: House, run_id: str, attempt: int = 0) -> str:
    """The id under which that attempt is known to Celery; a run shows the one of its last."""
    first = house.run(run_id)["key"].partition(":")[0]
    return first if attempt == 0 else f"{first}:{attempt}"
