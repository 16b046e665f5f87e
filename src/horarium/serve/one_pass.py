"""One pass of the engine, for those who let another scheduler keep the time: decide, hand out, wait, and end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, assert_never

from horarium.core.decision.facts import Decision, Fire, Hold, Missed, Skip
from horarium.core.document.states import Origin, Reason, instance_id
from horarium.engine.batch import Decided
from horarium.instant import rfc3339_or_none, to_rfc3339
from horarium.platform.ids import id_text
from horarium.serve.service import Service


class Pass(NamedTuple):
    """`decisions` are plain rows; `broken` are the schedules that could not be planned, with the reason."""

    decisions: list[dict[str, Any]]
    broken: list[tuple[str, str]]


async def one_pass(service: Service, *, everything: bool) -> Pass:
    """`everything`: batch after batch until nothing is due."""
    engine = service.engine
    await asyncio.to_thread(service.clock.measure)
    found = Pass([], [])
    await service.registry.start()
    try:
        await asyncio.to_thread(engine.janitor.step)
        more = True
        while more:
            tick = await asyncio.to_thread(engine.ticker.patient_step)
            found.decisions.extend(row for decided in tick.decided for row in _rows(decided))
            found.broken.extend((schedule_id, error) for _, schedule_id, error in tick.parked)
            more = everything and tick.more
        while await engine.dispatcher.step() or (await asyncio.to_thread(engine.advancer.step)).total:
            pass
    finally:
        await service.registry.close()
    return found


def _rows(decided: Decided) -> Iterator[dict[str, Any]]:
    born = iter(decided.entry.runs)
    fired_at, next_due = decided.entry.counts.last_fired_at, decided.entry.position.next_due
    for decision in decided.decisions:
        run = next(born) if isinstance(decision, Fire | Hold) else None
        yield {
            "namespace": decided.namespace,
            "schedule_id": decided.schedule_id,
            "instance_id": run and instance_id(decided.schedule_id, Origin.SCHEDULED, run.nominal, id_text(run.run_id)),
            "run_id": run and id_text(run.run_id),
            **_told(decision),
            "last_fired_at": rfc3339_or_none(fired_at),
            "next_fire_at": rfc3339_or_none(next_due),
        }


def _told(decision: Decision) -> Mapping[str, Any]:
    match decision:
        case Fire(nominal):
            return {"outcome": "triggered", "occurrence_time": to_rfc3339(nominal)}
        case Hold(nominal):
            return {"outcome": "buffered", "occurrence_time": to_rfc3339(nominal)}
        case Skip(nominal, reason):
            outcome = "buffer_full" if reason is Reason.BUFFER_FULL else "skipped"
            return {"outcome": outcome, "occurrence_time": to_rfc3339(nominal), "reason": reason.value}
        case Missed(first, last, count, reason):
            return {
                "outcome": "missed",
                "occurrence_time": to_rfc3339(first),
                "last": to_rfc3339(last),
                "count": count,
                "reason": reason.value,
            }
        case _:
            assert_never(decision)
