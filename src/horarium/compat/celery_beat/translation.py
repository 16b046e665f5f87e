"""Translation of an entry of Celery beat: the schedule that does the same, and remarks about every difference.

A remark is a note, or it says that the schedule only resembles the entry (it is written on request), or
that there is none. Fires that differ at a clock change are no remark: they are computed (`differences.py`).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from horarium.compat.celery_beat.crontab import CALENDAR_YEARS, cron_text
from horarium.compat.celery_beat.entries import (
    BeatEntry,
    CeleryApp,
    ClockedSchedule,
    Crontab,
    Every,
    Foreign,
    Remark,
    Weight,
    expires_at,
    expires_seconds,
    option_remarks,
    priority,
    time_limit,
)
from horarium.core.document.calendar import CalendarDefinition, local_date, to_document
from horarium.core.document.checks import MAX_NAME, MAX_NOTE
from horarium.core.document.document import parse_definition
from horarium.core.document.field import MAX_TIMEOUT_SECONDS
from horarium.core.policy.queue import MAX_ID
from horarium.core.recurrence.zone import DAY, HOUR, format_duration, load_zone
from horarium.errors import InvalidDefinition, InvalidSpec
from horarium.instant import SECOND, Instant, to_rfc3339

DEFAULT_TIMEOUT_SECONDS = 86_400
"""Timeout of a run whose task has no time limit, because beat sets none."""

LABEL = "imported"
"""Its value is the bundle: all that one import brought are paused and resumed by it."""

_UNFIT = re.compile(r"[^A-Za-z0-9._:@-]+", re.ASCII)
_MAX_MESSAGE = 300
_FIRST = re.compile(r"^[^A-Za-z0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class TranslationOptions:
    """Choices of the importing user for all entries."""

    prefix: str = ""
    connection: str | None = None
    timezone: str | None = None
    timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Translation:
    """`document` None = nothing here does what the entry does. `has_grid` = its fires can be compared one by one."""

    entry: BeatEntry
    schedule_id: str
    document: Mapping[str, Any] | None
    calendar: CalendarDefinition | None
    remarks: tuple[Remark, ...]
    has_grid: bool = True

    @property
    def weight(self) -> Weight:
        weights = {remark.weight for remark in self.remarks}
        return next((each for each in (Weight.REFUSED, Weight.APPROXIMATE) if each in weights), Weight.NOTE)


_Remarks: TypeAlias = Iterator[Remark]


def translate(app: CeleryApp, wishes: TranslationOptions) -> tuple[Translation, ...]:
    ids = schedule_ids([entry.name for entry in app.entries], wishes.prefix)
    return tuple(_translate(app, entry, ids[entry.name], wishes) for entry in app.entries)


def schedule_ids(names: Sequence[str], prefix: str = "") -> dict[str, str]:
    """By the name of each entry. What is no id is made one, and where two become the same a hash tells them apart.

    An id never depends on the order of entries, so that a second import finds the same ones.
    """
    room = MAX_ID - len(prefix)
    plain = {name: _FIRST.sub("", _UNFIT.sub("-", name)).rstrip("-")[:room] for name in names}
    count = Counter(plain.values())
    return {
        name: prefix + (fit if fit and (count[fit] == 1 or fit == name) else _with_hash(fit, name, room))
        for name, fit in plain.items()
    }


def _with_hash(fit: str, name: str, room: int) -> str:
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{fit[: room - 9] or 'entry'}-{mark}"


# ── one entry ─────────────────────────────────────────────────────────────────────────────────────


def _translate(app: CeleryApp, entry: BeatEntry, schedule_id: str, wishes: TranslationOptions) -> Translation:
    zone = wishes.timezone or entry.timezone
    remarks = [*_zone_remarks(zone), *_entry_remarks(entry), *option_remarks(app, entry, wishes.timeout_seconds)]
    spec, calendar, has_grid = None, None, False
    if all(remark.about != "timezone" for remark in remarks):
        spec, calendar, has_grid = _spec(entry, zone or "UTC", app.now, remarks)
    refused = spec is None or any(remark.weight is Weight.REFUSED for remark in remarks)
    document = None if refused else _document(app, entry, schedule_id, wishes, spec or {}, calendar)
    if document is not None and (wrong := _wrong_with(document, app.now)) is not None:
        remarks.append(wrong)
        document = None
    return Translation(entry, schedule_id, document, calendar, tuple(remarks), has_grid)


def _document(
    app: CeleryApp,
    entry: BeatEntry,
    schedule_id: str,
    wishes: TranslationOptions,
    spec: Mapping[str, Any],
    calendar: CalendarDefinition | None,
) -> dict[str, Any]:
    action: dict[str, Any] = {
        "kind": "celery",
        "task": entry.task,
        **({"args": list(entry.args)} if entry.args else {}),
        **({"kwargs": dict(entry.kwargs)} if entry.kwargs else {}),
        **({"queue": entry.queue} if entry.queue not in (None, "celery") else {}),
        **({"connection": wishes.connection} if wishes.connection is not None else {}),
        "timeout_seconds": min(time_limit(entry) or wishes.timeout_seconds, MAX_TIMEOUT_SECONDS),
    }
    document: dict[str, Any] = {
        "schedule_id": schedule_id,
        "name": " ".join(entry.name.split())[:MAX_NAME],
        "labels": {LABEL: bundle_name(app)},
        "spec": dict(spec),
        "action": action,
        # Beat asks nobody whether the task still runs, and the task repeats itself where it wants to.
        "overlap_policy": "allow_all",
        "catchup_policy": "fire_once",
        "retry_policy": {"max_retries": 0},
    }
    if entry.note:
        document["note"] = entry.note[:MAX_NOTE]
    if calendar is not None:
        document["calendars"] = [calendar.name]
    if (wanted := priority(app, entry)) is not None:
        document["priority"] = wanted
    if (expires := expires_seconds(entry)) is not None:
        document["misfire_grace_seconds"] = expires
    if isinstance(entry.when, Crontab) and app.starting_deadline is not None:
        document["catchup_window_seconds"] = app.starting_deadline
    if entry.one_off:
        document["max_runs"] = 1
    if wishes.paused or not entry.enabled:
        document["paused"] = True
    return document


def _wrong_with(document: Mapping[str, Any], now: Instant) -> Remark | None:
    """Reject an entry that no server would accept: it must not keep the others from being written."""
    try:
        parse_definition(document, now=now, may_be_over=True)
    except InvalidDefinition as wrong:
        return Remark(Weight.REFUSED, "schedule", f"is not a valid schedule: {str(wrong)[:_MAX_MESSAGE]}")
    return None


# ── when ──────────────────────────────────────────────────────────────────────────────────────────


def _spec(
    entry: BeatEntry, zone: str, now: Instant, remarks: list[Remark]
) -> tuple[dict[str, Any] | None, CalendarDefinition | None, bool]:
    """With the calendar it needs, and whether its fires can be compared one by one."""
    calendar, has_grid = None, True
    spec: dict[str, Any] = {"timezone": zone}
    match entry.when:
        case Crontab():
            said = cron_text(entry.when, local_date(zone, now))
            spec["cron_expressions"], calendar = [said.expression], said.calendar
            remarks += _calendar_remarks(calendar)
        case Every():
            has_grid = _interval(entry.when, zone, now, spec, remarks)
        case ClockedSchedule(at):
            spec["at"] = [to_rfc3339(-(-at // SECOND) * SECOND)]
            if at <= now:
                remarks.append(Remark(Weight.REFUSED, "clocked", f"the time {to_rfc3339(at)} is in the past"))
        case Foreign(kind, text):
            why = "solar schedules are not supported" if kind == "solar" else "this kind of schedule is not supported"
            remarks.append(Remark(Weight.REFUSED, "schedule", f"{text[:200]}: {why}"))
            return None, None, False
        case _:
            assert_never(entry.when)
    _window(entry, now, spec, remarks)
    return spec, calendar, has_grid


def _interval(every: Every, zone: str, now: Instant, spec: dict[str, Any], remarks: list[Remark]) -> bool:
    """Puts it into the spec; whether its fires are at known moments, and not counted from an unknown beginning."""
    seconds = max(1, round(every.seconds))
    if every.seconds <= 0:
        remarks.append(Remark(Weight.REFUSED, "interval", "the interval must be greater than 0"))
    elif seconds != every.seconds:
        text = f"every {every.seconds:g} s is rounded to every {seconds} s, because the smallest unit is one second"
        remarks.append(Remark(Weight.APPROXIMATE, "interval", text))
    if every.relative and seconds == DAY:
        spec["cron_expressions"] = ["0 0 * * *"]
        return True
    if every.relative and seconds == HOUR:
        spec["cron_expressions"] = ["0 * * * *"]
        return True
    spec["intervals"] = [{"every": format_duration(seconds)}]
    if every.relative and seconds > DAY:
        offset = -load_zone(zone).offset_at(now // SECOND) % seconds
        spec["intervals"] = [{"every": format_duration(seconds), "offset": format_duration(offset)}]
        text = f"beat rounds to midnight in {zone}; Horarium counts {format_duration(seconds)} in UTC"
        remarks.append(Remark(Weight.APPROXIMATE, "relative", text))
    text = "beat counts from its start; Horarium counts from 1970-01-01T00:00:00Z, regardless of restarts"
    remarks.append(Remark(Weight.NOTE, "anchor", text))
    return False


def _window(entry: BeatEntry, now: Instant, spec: dict[str, Any], remarks: list[Remark]) -> None:
    if entry.start_at is not None and entry.start_at > now:
        spec["start_at"] = to_rfc3339(entry.start_at)
    end = entry.end_at if entry.end_at is not None else expires_at(entry)
    if end is not None:
        # From that moment on beat sends nothing, or what no worker takes; here the end belongs to the window.
        spec["end_at"] = to_rfc3339(end - 1)
        if end <= now:
            remarks.append(Remark(Weight.REFUSED, "expires", f"ended at {to_rfc3339(end)}"))


def _calendar_remarks(calendar: CalendarDefinition | None) -> _Remarks:
    if calendar is None:
        return
    until = f" (covers {CALENDAR_YEARS} years)" if calendar.covers is not None else ""
    text = (
        "day of month and day of week must both match; "
        f"the calendar {calendar.name}{until} excludes the other days, which are recorded as skipped"
    )
    yield Remark(Weight.NOTE, "days", text)


# ── what differs ──────────────────────────────────────────────────────────────────────────────────


def _zone_remarks(zone: str | None) -> _Remarks:
    if zone is None:
        text = "is the local time zone of the machine and has no name; set --tz"
        yield Remark(Weight.REFUSED, "timezone", text)
        return
    try:
        load_zone(zone)
    except InvalidSpec as wrong:
        yield Remark(Weight.REFUSED, "timezone", wrong.message.removeprefix("timezone: "))


def _entry_remarks(entry: BeatEntry) -> _Remarks:
    if not entry.task:
        yield Remark(Weight.REFUSED, "task", "is required")
    if entry.not_json is not None:
        yield Remark(Weight.REFUSED, "arguments", f"{entry.not_json[:200]}; arguments must be JSON")
    if entry.own_class is not None:
        text = f"{entry.own_class} is a custom class; its changes are not translated"
        yield Remark(Weight.APPROXIMATE, "schedule", text)
    if entry.own_clock:
        yield Remark(Weight.APPROXIMATE, "nowfun", "uses a custom clock, which is not translated")
    if entry.routed_by is not None:
        text = f"{entry.routed_by} routes to no queue of the app; the queue is {entry.queue or 'celery'}"
        yield Remark(Weight.APPROXIMATE, "routing", text)
    if entry.task and entry.known_task is False:
        yield Remark(Weight.NOTE, "task", f"the app has no task {entry.task[:200]!r}")
    if not entry.enabled:
        yield Remark(Weight.NOTE, "enabled", "is disabled; the schedule is paused")
    if entry.one_off and entry.sent:
        yield Remark(Weight.REFUSED, "one_off", "was already sent and is not sent again")
    elif entry.one_off:
        yield Remark(Weight.NOTE, "one_off", "is sent once; max_runs is 1")
    if entry.not_stepped is not None:
        text = f"beat cannot compute it: {entry.not_stepped[:200]}"
        yield Remark(Weight.NOTE, "schedule", text)


# ── the bundle ────────────────────────────────────────────────────────────────────────────────────


def bundle_name(app: CeleryApp) -> str:
    return f"celery:{_UNFIT.sub('-', app.name)}"[:MAX_ID]


def bundle_of(app: CeleryApp, translations: Sequence[Translation], *, approximate: bool) -> dict[str, Any]:
    """Build the input of `apply`: all exact translations, and with `approximate` the similar ones."""
    taken = [each for each in translations if is_importable(each, approximate=approximate)]
    calendars = {each.calendar.name: each.calendar for each in taken if each.calendar and not each.calendar.read_only}
    documents = [
        {key: value for key, value in to_document(each).items() if value is not None and key != "read_only"}
        for each in calendars.values()
    ]
    return {
        "bundle": bundle_name(app),
        **({"calendars": documents} if documents else {}),
        "schedules": [dict(each.document) for each in taken if each.document is not None],
    }


def is_importable(translation: Translation, *, approximate: bool) -> bool:
    return translation.document is not None and (approximate or translation.weight is not Weight.APPROXIMATE)
