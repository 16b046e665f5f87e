"""Routes that preview and explain occurrences; they write nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, overload

import msgspec
from fastapi import Query

from horarium.core.decision import explain
from horarium.core.decision.forecast import ForecastRow, RecordedDecision
from horarium.core.decision.statuses import HAPPENED, MoveKind
from horarium.core.decision.year import YearOverview
from horarium.core.document.states import EventType, Reason
from horarium.errors import InvalidDefinition
from horarium.features.forecast import service
from horarium.features.forecast.service import Previewed
from horarium.features.schedules.creation import MomentText
from horarium.features.schedules.model import (
    Explanation,
    Finding,
    Moved,
    Preview,
    PreviewRow,
    RecordedEvent,
    Year,
    YearDay,
)
from horarium.instant import Instant, from_rfc3339, to_datetime, to_rfc3339
from horarium.platform.database.statements import MAX_PAGE_BYTES
from horarium.platform.http import examples
from horarium.platform.http.requests import CallerOf, ResourcesOf
from horarium.platform.http.responses import Reply
from horarium.platform.http.routing import READ, Routes
from horarium.platform.wire import ExplainedOutcome, ExplainedSource, encode, time_of

routes = Routes("/api/schedules/{schedule_id}", tag="previews")

MOMENT = "RFC 3339 time, duration from now such as 4h or -4h, local time, or date"
LocalZone = Annotated[
    str | None, Query(description=("Time zone of a local time or date (default: time zone of the schedule)."))
]
_OUTCOMES = {kind.value: ExplainedOutcome(word.value) for kind, word in HAPPENED.items()}


@routes(
    "GET",
    "/preview",
    needs=READ,
    summary="Preview the upcoming runs of a schedule",
    answer=Preview,
    example=Preview(schedule_id="nightly-report", rows=(examples.PREVIEW,)),
)
def preview_schedule(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    n: Annotated[int, Query(description="Number of occurrences, 1 to 200.")] = 10,
    start: Annotated[str | None, Query(alias="from", description=f"Start (default now): {MOMENT}.")] = None,
    timezone: LocalZone = None,
) -> Reply:
    """At most 31 days ahead."""
    # What is at `from` itself is wanted too.
    asked = written("from", start, timezone)
    after = None if asked is None else service.moment_of(resources, caller, schedule_id, asked) - 1
    found = service.preview(resources, caller, schedule_id, rows=n, after=after)
    return Reply(Preview(schedule_id=schedule_id, rows=tuple(preview_rows(found))))


@routes(
    "GET",
    "/year",
    needs=READ,
    summary="Show the fire days of a schedule in a year",
    answer=Year,
    example=Year(
        schedule_id="nightly-report",
        timezone="Europe/Istanbul",
        year=2026,
        days=(
            YearDay(date="2026-12-30", fires=1, skips=0, reasons={}),
            YearDay(
                date="2026-12-31",
                fires=0,
                skips=1,
                reasons={Reason.CALENDAR.value: 1},
                detail="holidays:TR skips 2026-12-31",
            ),
        ),
        bounded=False,
    ),
)
def get_schedule_year(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    year: Annotated[int | None, Query(description="Year, 1901 to 9891 (default this year).")] = None,
) -> Reply:
    """Days in the time zone of the schedule, from its creation on: past days as decided, future days as predicted.

    Days that history does not cover (expired, or older than the last 50,000 events) follow the current spec and
    calendars.
    """
    return Reply(shown_year(schedule_id, service.look_at_year(resources, caller, schedule_id, year)))


@routes(
    "GET",
    "/explain",
    needs=READ,
    summary="Explain an occurrence of a schedule",
    answer=Explanation,
    example=examples.EXPLANATION,
)
def explain_schedule(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    at: Annotated[str, Query(description=f"Time in the past or future: {MOMENT}.")],
    timezone: LocalZone = None,
) -> Reply:
    """Reports why a schedule did, did not, will or will not fire at a time."""
    instant = service.moment_of(resources, caller, schedule_id, written("at", at, timezone))
    return Reply(_explained(schedule_id, service.explain(resources, caller, schedule_id, instant)))


def shown_year(schedule_id: str, found: YearOverview) -> Year:
    days = (
        YearDay(
            date=day.date.isoformat(),
            fires=day.fires,
            skips=day.skips,
            reasons={str(reason): count for reason, count in day.reasons.items()},
            detail=day.detail,
        )
        for day in found.days
    )
    return Year(
        schedule_id=schedule_id, timezone=found.timezone, year=found.year, days=tuple(days), bounded=found.bounded
    )


def moment(name: str, text: str) -> Instant:
    try:
        return from_rfc3339(_with_plus(text), field=name)
    except ValueError:
        raise InvalidDefinition({name: ["must be a time such as 2026-03-08T07:00:00Z"]}) from None


@overload
def written(name: str, text: str, timezone: str | None) -> MomentText: ...
@overload
def written(name: str, text: str | None, timezone: str | None) -> MomentText | None: ...
def written(name: str, text: str | None, timezone: str | None) -> MomentText | None:
    """Read a time in a query, which may be written as a person writes it."""
    return None if text is None else MomentText(_with_plus(text), timezone, name)


def _with_plus(text: str) -> str:
    """A plus sign that nobody encoded comes as a blank; `7 days` is none."""
    plain = text.strip()
    return plain.replace(" ", "T" if "T" not in plain.upper() else "+") if plain[:4].isdigit() else plain


def preview_rows(found: Iterable[Previewed]) -> Iterator[PreviewRow]:
    """Inputs are shown while they fit: those of a schedule may be a megabyte, at each of 200 occurrences."""
    texts: dict[int, bytes] = {}
    left = MAX_PAGE_BYTES
    for each in found:
        text = texts.setdefault(id(each.inputs), b"") or encode(each.inputs)
        texts[id(each.inputs)] = text
        left -= len(text) + len(each.prompt or "")
        shown, prompt = (msgspec.Raw(text), each.prompt) if left >= 0 else (None, None)
        omitted = left < 0 and (each.inputs, each.prompt) != (None, None)
        yield _row(each.row, shown, prompt, omitted=omitted)


def _row(row: ForecastRow, inputs: Any, prompt: str | None, *, omitted: bool) -> PreviewRow:
    return PreviewRow(
        tick_at=to_datetime(row.tick_at),
        decision=row.decision,
        reason=row.reason,
        inputs=inputs,
        prompt=prompt,
        inputs_omitted=omitted,
        due=to_datetime(row.due),
        detail=row.detail,
        rotation_index=row.rotation_index,
        held=row.held,
        certainty=row.certainty,
        moved=moved(row),
        sentence=row.sentence,
    )


def moved(row: ForecastRow) -> tuple[Moved, ...]:
    if not row.moved:
        return ()
    return tuple(
        Moved(kind=MoveKind(each.kind), local_time=each.local_time, seconds=each.seconds, parts=each.parts)
        for each in row.moved
    )


def forecast_fields(row: ForecastRow) -> dict[str, Any]:
    """The fields of a row that say how an occurrence is forecast."""
    return {
        "due": to_datetime(row.due),
        "held": row.held,
        "certainty": row.certainty,
        "moved": moved(row),
        "sentence": row.sentence,
    }


def _explained(schedule_id: str, found: explain.OccurrenceExplanation) -> Explanation:
    recorded = found.recorded
    return Explanation(
        schedule_id=schedule_id,
        at=to_datetime(found.at),
        as_of=to_datetime(found.as_of),
        sentence=found.sentence,
        on_spec=found.on_spec,
        **(_predicted(found) if recorded is None else _decided(found, recorded)),
        due=time_of(found.due),
        findings=tuple(
            Finding(question=each.question, holds=each.holds, detail=each.detail) for each in found.findings
        ),
        recorded=None
        if recorded is None
        else RecordedEvent(event_type=EventType(recorded.event_type), payload=recorded.payload),
        previous=time_of(found.previous),
        following=time_of(found.following),
    )


def _predicted(found: explain.OccurrenceExplanation) -> dict[str, Any]:
    fires = ExplainedOutcome.FIRES if found.fires else ExplainedOutcome.SKIPS
    row = found.forecast
    known = {} if row is None else {"certainty": row.certainty, "held": row.held, "moved": moved(row)}
    return {
        **known,
        "existed": found.existed,
        "outcome": fires if found.on_spec and found.existed else ExplainedOutcome.NOTHING,
        "fires": found.fires,
        "reason": found.reason,
        "source": ExplainedSource.PREDICTION,
    }


def _decided(found: explain.OccurrenceExplanation, recorded: RecordedDecision) -> dict[str, Any]:
    """Describe a recorded outcome, which takes precedence over what would be decided today."""
    covered = recorded.is_birth and recorded.payload.get("occurrence_time") != to_rfc3339(found.at)
    outcome = _OUTCOMES.get(recorded.event_type, ExplainedOutcome.RECORDED)
    return {
        "outcome": ExplainedOutcome.COVERED if covered else outcome,
        "fires": found.fires and not covered,
        "reason": None if covered else recorded.payload.get("reason"),
        "source": ExplainedSource.HISTORY,
    }
