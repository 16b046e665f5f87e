"""`horarium tick`: one pass of the engine, for those who let another scheduler keep the time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from horarium.cli.present import show_columns
from horarium.cli.render import Json, show_json, talk
from horarium.cli.service import App, DatabaseUrl, DataDir, failing_with_1, settings_of

if TYPE_CHECKING:
    from horarium.decision.plan import Decision
    from horarium.engine.batch import Decided
    from horarium.serve.service import Service

_COLUMNS = ("schedule_id", "instance_id", "outcome", "occurrence_time", "last_fired_at", "next_fire_at")


def tick_command(
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, max=10_000, metavar="N", show_default="all", help="Schedules, at most."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the decisions as JSON.")] = False,
    data_dir: DataDir = None,
    database: DatabaseUrl = None,
    app: App = None,
) -> None:
    """Decide what is due, hand out what is ready, wait for the answers, and end.

    Example: horarium tick --json --limit 100
    """
    import asyncio

    from horarium.serve.service import open_service

    settings = settings_of(data_dir=data_dir, database=database, app=app, tick_batch=limit, log_level="error")
    with failing_with_1(), open_service(settings, migrates=False) as service:
        rows, parked = asyncio.run(_pass(service, everything=limit is None))
    if as_json:
        show_json(list(rows))
    elif rows:
        show_columns(_COLUMNS, [[row.get(column) for column in _COLUMNS] for row in rows])
    for schedule_id, error in parked:
        talk(f"{schedule_id} is broken: {error}")
    if not rows:
        talk("nothing is due")
    if parked:
        raise typer.Exit(1)


async def _pass(service: Service, *, everything: bool) -> tuple[list[dict[str, Json]], list[tuple[str, str]]]:
    import asyncio

    engine = service.engine
    await asyncio.to_thread(service.clock.measure)
    rows: list[dict[str, Json]] = []
    parked: list[tuple[str, str]] = []
    await service.registry.start()
    try:
        await asyncio.to_thread(engine.janitor.step)
        more = True
        while more:
            tick = await asyncio.to_thread(engine.ticker.step)
            rows += [row for decided in tick.decided for row in _rows(decided)]
            parked += [(schedule_id, error) for _, schedule_id, error in tick.parked]
            more = everything and tick.more
        while await engine.dispatcher.step():
            pass
    finally:
        await service.registry.close()
    return rows, parked


def _rows(decided: Decided) -> Iterator[dict[str, Json]]:
    from horarium.decision.plan import Fire, Hold
    from horarium.ids import id_text
    from horarium.instant import to_rfc3339
    from horarium.schedule.run import Origin, instance_id

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
            "last_fired_at": None if fired_at is None else to_rfc3339(fired_at),
            "next_fire_at": None if next_due is None else to_rfc3339(next_due),
        }


def _told(decision: Decision) -> dict[str, Json]:
    from horarium.decision.plan import Fire, Hold, Missed, Skip
    from horarium.instant import to_rfc3339
    from horarium.schedule.reason import Reason

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
