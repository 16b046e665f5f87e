"""Describe the entries and fires of Celery beat; a program for the interpreter of the Celery app.

It is started with `python -c` in the working directory of `celery beat` and writes the description that `entries.py`
reads. It imports nothing of this package and supports Python 3.9, because the app may use another environment. It
does not contact the broker and changes no rows.
"""

from __future__ import annotations

import json
import math
import os
import sys
from datetime import datetime, timedelta, timezone, tzinfo
from importlib import import_module
from typing import Any

Entry = dict[str, Any]
Span = dict[str, Any]

FORMAT = 1
UTC = timezone.utc  # noqa: UP017 - older Pythons have no other name for it
# A step of Celery's crontab takes about 50 µs: all entries together are given some twenty seconds. With a thousand
# entries that is a year of days for each; with more it is less, and around the clock changes after that.
ALL_STEPS = 400_000
LEAST_STEPS, CHANGE_STEPS = 80, 800
BEFORE_CHANGE, AFTER_CHANGE = 3 * 3_600, 27 * 3_600
MOST_CHANGES = 20
DAY = 86_400
LONGEST = 3_650 * DAY
DEEPEST = 50
LARGEST = 10**300
FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")


def described(wanted: dict[str, Any]) -> dict[str, Any]:
    """`wanted`: app, django, now and until in epoch seconds, and the steps that one entry may take."""
    import celery
    from celery.app.utils import find_app

    app = find_app(wanted["app"])
    if wanted["django"]:
        import_module("django").setup()
    if not isinstance(app, celery.Celery):
        raise TypeError("{} is not a Celery app, but {}".format(wanted["app"], type(app).__name__))
    return app_document(app, wanted)


def app_document(app: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    import celery

    app.loader.import_default_modules()
    app.finalize()
    found = {entry["name"]: (entry, schedule) for entry, schedule in beat_entries(app)}
    if wanted["django"]:
        for entry, schedule in django_entries(app):
            # When it starts beat writes its own entries over the rows, but for whether they are switched on.
            mine = found.setdefault(entry["name"], (entry, schedule))
            mine[0]["enabled"] = entry["enabled"]
    deadline = app.conf.beat_cron_starting_deadline
    share = min(wanted["steps"], max(LEAST_STEPS, ALL_STEPS // max(1, len(found))))
    known: dict[str, list[Span]] = {}
    for entry, schedule in found.values():
        step(entry, schedule, app, (wanted["now"], wanted["until"], share), known)
    return {
        "horarium_celery": FORMAT,
        "app": app.main or wanted["app"].partition(":")[0],
        "celery": celery.__version__,
        "now": rfc3339(datetime.fromtimestamp(wanted["now"], UTC)),
        "transport": transport_of(app),
        "starting_deadline": math.ceil(deadline) if deadline is not None else None,
        "entries": [found[name][0] for name in sorted(found)],
    }


# ── what beat knows ───────────────────────────────────────────────────────────────────────────────


def beat_entries(app: Any) -> list[tuple[Entry, Any]]:
    """By beat itself: a plain number becomes a schedule, and the clean-up of results is there where it is needed."""
    from celery.beat import Scheduler

    scheduler = Scheduler(app, lazy=True)
    scheduler.setup_schedule()
    return [
        (entry_of(app, entry.name, entry.task, entry.args, entry.kwargs, entry.options, entry.schedule), entry.schedule)
        for entry in scheduler.schedule.values()
    ]


def django_entries(app: Any) -> list[tuple[Entry, Any]]:
    tasks = import_module("django_celery_beat.models").PeriodicTask.objects
    found = []
    rows = tasks.select_related("interval", "crontab", "solar", "clocked").order_by("name")
    for row in rows.iterator(chunk_size=1_000):
        names = ("queue", "exchange", "routing_key", "priority")
        options = {name: getattr(row, name) for name in names if getattr(row, name) is not None}
        if row.expire_seconds is not None:
            options["expires"] = row.expire_seconds
        try:
            args, kwargs = json.loads(row.args or "[]"), json.loads(row.kwargs or "{}")
            headers = json.loads(row.headers or "{}")
            wrong = None
        except ValueError as error:
            args, kwargs, headers, wrong = [], {}, {}, f"arguments or headers are not JSON: {error}"
        if headers:
            options["headers"] = headers
        schedule = schedule_of(row)
        entry = entry_of(app, row.name, row.task, args, kwargs, options, schedule)
        entry.update(
            enabled=row.enabled,
            one_off=row.one_off,
            sent=row.total_run_count,
            start_at=rfc3339(row.start_time),
            end_at=rfc3339(row.expires),
            note=cut(row.description) or None,
            not_json=wrong or entry["not_json"],
        )
        found.append((entry, schedule))
    return found


def schedule_of(row: Any) -> Any:
    """Read the schedule of a row; an error is returned, since one bad row concerns one entry only."""
    try:
        return row.schedule
    except Exception as error:
        return ValueError(cut(f"{type(error).__name__}: {error}"))


def entry_of(app: Any, name: str, task: str, args: Any, kwargs: Any, options: Any, schedule: Any) -> Entry:
    registered = app.tasks.get(task)
    options = {**(registered._get_exec_options() if registered else {}), **(options or {})}
    options = {key: value for key, value in options.items() if value is not None}
    args, kwargs = args or (), kwargs or {}
    wrong = not_plain("args", args, 0) or not_plain("kwargs", kwargs, 0)
    if not isinstance(args, (list, tuple)) or not isinstance(kwargs, dict):
        wrong = wrong or "args must be a list and kwargs a dict"
    queue, routed_by = destination(app, task, args, kwargs, options)
    if hasattr(schedule, "app"):
        schedule.app = app
    limit = getattr(registered, "time_limit", None) or app.conf.task_time_limit
    return {
        "name": cut(str(name)),
        "task": cut(str(task or "")),
        "schedule": schedule_document(schedule),
        "timezone": zone_name(zone_of(schedule, app)),
        "args": [] if wrong else list(args),
        "kwargs": {} if wrong else kwargs,
        "not_json": wrong,
        "options": {key: shown_option(value, app) for key, value in options.items()},
        "queue": queue,
        "routed_by": routed_by,
        "own_class": own_class(schedule),
        "own_clock": has_own_clock(schedule, app),
        "known_task": registered is not None,
        "time_limit": math.ceil(limit) if limit else None,
        "enabled": True,
    }


def destination(app: Any, task: str, args: Any, kwargs: Any, options: dict[str, Any]) -> tuple[str | None, str | None]:
    """The queue that the app's routes lead to, and exchange and key where they lead to none that it names."""
    names = ("queue", "exchange", "routing_key")
    given = {key: value for key, value in options.items() if key in names}
    try:
        route = app.amqp.router.route(given, task, args, kwargs, task_type=app.tasks.get(task))
        queue = route.get("queue")
        exchange, key = route.get("exchange"), route.get("routing_key")
        own = (queue.exchange.name, queue.routing_key)
        meant = (getattr(exchange, "name", exchange) or own[0], key or own[1])
        if meant == own:
            return cut(str(queue.name)), None
        for other in app.amqp.queues.values():
            if (other.exchange.name, other.routing_key) == meant:
                return cut(str(other.name)), None
        return cut(str(queue.name)), "exchange {!r} with the key {!r}".format(*meant)
    except Exception as error:
        named = options.get("queue")
        named = cut(named) if isinstance(named, str) else None
        return named, cut(f"its route cannot be found ({type(error).__name__}: {error}), which")


# ── schedules ─────────────────────────────────────────────────────────────────────────────────────


def schedule_document(schedule: Any) -> dict[str, Any]:
    from celery.schedules import crontab, solar
    from celery.schedules import schedule as interval

    if isinstance(schedule, crontab):
        fields = {}
        for name in FIELDS:
            written, values = getattr(schedule, "_orig_" + name), getattr(schedule, name)
            text = written.strip() if isinstance(written, str) else None
            fields[name] = {"text": cut(text), "values": sorted(values)}
        return {"kind": "crontab", **fields}
    if isinstance(schedule, solar):
        return {"kind": "solar", "text": cut(repr(schedule))}
    if isinstance(schedule, interval):
        seconds = schedule.run_every.total_seconds() if schedule.run_every else 0
        if seconds > LONGEST:  # what is meant is never
            return {"kind": "unknown", "text": f"every {schedule.run_every.days} days"}
        return {"kind": "interval", "seconds": max(0, seconds), "relative": bool(schedule.relative)}
    if is_clocked(schedule):
        return {"kind": "clocked", "at": rfc3339(schedule.clocked_time)}
    return {"kind": "unknown", "text": cut(str(schedule) if isinstance(schedule, ValueError) else repr(schedule))}


def is_clocked(schedule: Any) -> bool:
    return type(schedule).__name__ == "clocked" and type(schedule).__module__.startswith("django_celery_beat.")


def own_class(schedule: Any) -> str | None:
    """The name of a class that is neither Celery's nor that of its tables."""
    module, name = type(schedule).__module__, type(schedule).__qualname__
    known = module.startswith(("celery.", "django_celery_beat.")) or isinstance(schedule, ValueError)
    return None if known else cut(f"{module}.{name}")


def has_own_clock(schedule: Any, app: Any) -> bool:
    """A clock that shows the same as everybody's, whatever its zone, is none of its own."""
    clock = getattr(schedule, "nowfun", None)
    if clock is None or type(schedule).__module__.startswith("django_celery_beat."):
        return False
    try:
        told = clock()
        return told.tzinfo is None or abs((told - app.now()).total_seconds()) > 60
    except Exception:
        return True


def zone_of(schedule: Any, app: Any) -> Any:
    return getattr(schedule, "tz", None) or app.timezone


def zone_name(zone: Any) -> str | None:
    """None for the zone of a machine that nobody has named."""
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if name:
        return str(name)
    if isinstance(zone, tzinfo) and type(zone).__name__ != "LocalTimezone":
        return "UTC" if str(zone) == "UTC" else None
    named = os.environ.get("TZ", "").lstrip(":")
    if not named and os.path.islink("/etc/localtime"):
        named = os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    return named or None


def transport_of(app: Any) -> str | None:
    try:
        return str(app.connection_for_write().transport_cls).partition("+")[0].partition(":")[0]
    except Exception:
        return None


# ── stepping through the year ─────────────────────────────────────────────────────────────────────


def step(entry: Entry, schedule: Any, app: Any, reach: tuple[int, int, int], known: dict[str, list[Span]]) -> None:
    """An interval is counted from when beat begins, so that its moments say nothing, unless it is rounded.

    Many entries have the same crontab: `known` are those that were stepped through.
    """
    said = entry["schedule"]
    if said["kind"] != "crontab" and not (said["kind"] == "interval" and said["relative"]):
        return
    own = entry["name"] if entry["own_class"] or entry["own_clock"] else None
    key = json.dumps([said, entry["timezone"], own], sort_keys=True)
    try:
        if key not in known:
            known[key] = stepped(schedule, zone_of(schedule, app), *reach)
        entry["spans"] = known[key]
    except Exception as error:
        entry["not_stepped"] = cut(f"{type(error).__name__}: {error}")


def stepped(schedule: Any, zone: Any, start: int, end: int, share: int) -> list[Span]:
    """The whole way if `share` steps are enough; else as far as they go, and around each clock change after that."""
    spans = [walk(schedule, zone, start, end, share)]
    reached = spans[0]["until"]
    if reached < end:
        for change in clock_changes(zone, reached, end)[:MOST_CHANGES]:
            low, high = max(reached, change - BEFORE_CHANGE), min(end, change + AFTER_CHANGE)
            spans.append(walk(schedule, zone, low, high, min(share, CHANGE_STEPS)))
    return spans


def walk(schedule: Any, zone: Any, start: int, end: int, steps: int) -> Span:
    """As beat does: it asks again when it was told to, and what was due has run at that moment."""
    last = now = datetime.fromtimestamp(start, zone)
    schedule.nowfun = lambda: now
    fires: list[int] = []
    at, reached = float(start), float(start)
    for _ in range(steps):
        due, pause = schedule.is_due(last)
        if due:
            fires.append(int(at))
            last = now
        reached, at = at, at + max(pause, 1)
        if at > end:
            reached = end
            break
        now = datetime.fromtimestamp(at, zone)
    return {"after": start, "until": int(reached), "fires": [fire for fire in fires if fire > start]}


def clock_changes(zone: Any, start: int, end: int) -> list[int]:
    def offset(moment: int) -> Any:
        return datetime.fromtimestamp(moment, zone).utcoffset()

    found = []
    for low in range(start, end, DAY):
        high = min(low + DAY, end)
        before = offset(low)
        if offset(high) == before:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(middle) == before else (low, middle)
        found.append(high)
    return found


# ── values ────────────────────────────────────────────────────────────────────────────────────────


def not_plain(place: str, value: Any, depth: int) -> str | None:
    """Describe a value that JSON cannot express; a tuple counts as a list."""
    if depth > DEEPEST:
        return f"{place[:100]} is nested too deeply"
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return (
            None
            if is_text(value)
            else f"{place[:100]} is {cut(ascii(value), 100)}, which contains an unpaired surrogate"
        )
    if isinstance(value, int):
        return None if abs(value) < LARGEST else f"{place[:100]} is a number that is too large"
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{place[:100]} is {value!r}"
    if isinstance(value, (list, tuple)):
        inside = ((str(number), each) for number, each in enumerate(value))
    elif isinstance(value, dict) and all(isinstance(key, str) and is_text(key) for key in value):
        inside = ((key, each) for key, each in value.items())
    else:
        return cut(f"{place[:100]} is {cut(repr(value), 100)} ({type(value).__name__})")
    return next((wrong for key, each in inside if (wrong := not_plain(place + "." + key, each, depth + 1))), None)


def is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown_option(value: Any, app: Any) -> Any:
    """Moments as text, durations as seconds; what is no JSON as it shows itself."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return rfc3339(value, app)
    return value if not_plain("", value, 0) is None else cut(repr(value))


def rfc3339(moment: datetime | None, app: Any = None) -> str | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC if app is None else app.timezone)
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"


def cut(text: str | None, most: int = 900) -> str | None:
    return text if text is None or len(text) <= most else text[: most - 1] + "…"


def main() -> None:
    wanted = json.loads(sys.argv[1])
    sys.path.insert(0, os.getcwd())
    try:
        answer = described(wanted)
    except BaseException as error:  # a module may end the program, and that is an answer too
        answer = {"error": f"{type(error).__name__}: {error}"}
    with open(wanted["output"], "w", encoding="utf-8", errors="surrogatepass") as file:
        json.dump(answer, file)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads that the app has started do not keep us


if __name__ == "__main__":
    main()
