"""Generate reference pages from the code: fields, settings, events, metrics, CLI, HTTP, delivery.

    python docs/generate.py            write the pages
    python docs/generate.py --check    list outdated pages; exit code 1 if there are any

A test compares the pages with the generated text, so a setting, route or command cannot change without its page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from generate_cli import cli_page
from generate_http import http_page
from generate_schedule import schedule_page
from generate_text import code, codes, page, table
from prometheus_client import Histogram
from pydantic_core import PydanticUndefined

from horarium.core.document.states import (
    ADDED_KEYS,
    CONTRACT_KEYS,
    FINAL,
    LINEAGE_KEYS,
    EventType,
    Origin,
    Reason,
    RunEventType,
    RunState,
)
from horarium.launchers.tasks import TaskRegistry
from horarium.platform.clock import SystemClock
from horarium.platform.settings import Settings, variable
from horarium.platform.telemetry.metrics import Installation, Metrics
from horarium.serve.launchers import make_registry

FOLDER = Path(__file__).parent / "reference"


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────

_SECTION = re.compile(r"# ── (.+?) ─|^    (\w+): ", re.MULTILINE)


def settings_page() -> str:
    parts: list[str] = []
    for heading, names in _sections().items():
        rows = [(code(name), _default(name), code(variable(name)), _meaning(name)) for name in names]
        parts += [
            f"## {heading[0].upper()}{heading[1:]}",
            table(("setting", "default", "environment variable", "description"), rows),
        ]
    return page(
        "Settings",
        "Horarium reads a setting from the first of these sources that sets it: command line option, environment "
        "variable, configuration file, default. The configuration file is `horarium.toml` in the working directory, or "
        "the file named by `HORARIUM_CONFIG`.",
        "In the file, use the names of the first column. Maps such as `commands` are tables in the file and JSON in an "
        "environment variable. `horarium config` prints the current values and their sources.",
        *parts,
    )


def _sections() -> dict[str, list[str]]:
    """Group the settings by the comments between the fields."""
    source = Path(sys.modules[Settings.__module__].__file__ or "").read_text("utf-8")
    body = source[source.index("class Settings(") :]
    found: dict[str, list[str]] = {}
    for heading, name in _SECTION.findall(body):
        if heading:
            found[heading] = []
        elif name in Settings.model_fields:
            found[next(reversed(found))].append(name)
    missing = set(Settings.model_fields) - {name for names in found.values() for name in names}
    assert not missing, f"under no heading: {missing}"
    return found


def _default(name: str) -> str:
    field = Settings.model_fields[name]
    value = field.default
    if value is PydanticUndefined and field.default_factory is not None:
        value = field.default_factory()  # type: ignore[call-arg]
    match value:
        case None:
            return "–"
        case bool():
            return code(str(value).lower())
        case _:
            return code(value)


def _meaning(name: str) -> str:
    field = Settings.model_fields[name]
    alias = getattr(field.validation_alias, "choices", ())
    also = [str(each) for each in alias if each != variable(name)]
    bounds = [_BOUNDS[type(each).__name__](each) for each in field.metadata if type(each).__name__ in _BOUNDS]
    extra = [", ".join(bounds), f"other names: {codes(also)}" if also else ""]
    told = "; ".join(part for part in extra if part)
    return (field.description or "") + (f" ({told})" if told else "")


_BOUNDS: Mapping[str, Callable[[Any], str]] = {
    "Ge": lambda bound: f"at least {bound.ge}",
    "Gt": lambda bound: f"more than {bound.gt}",
    "Le": lambda bound: f"at most {bound.le}",
}


# ── events ───────────────────────────────────────────────────────────────────────────────────────────


def events_page() -> str:
    rows = [
        (code(kind.value), codes(sorted(CONTRACT_KEYS.get(kind, ()))) or "–", codes(sorted(ADDED_KEYS[kind])))
        for kind in EventType
    ]
    return page(
        "History events",
        "Each schedule and each run has a history of events. Get them with `GET /api/schedules/{schedule_id}/history` "
        "and `GET /api/runs/{run_id}/events`. Event payloads contain only the keys listed here. Keys without a value "
        "are omitted.",
        "## Schedule events",
        "The events of a schedule are numbered from 1 without gaps. `command_context` contains `principal`, "
        "`request_id`, `source` and `reason` of the request that caused the event. Events without a request omit it.",
        "Standard keys are those of the Durable Workflow schedule contract. Additional keys are specific to Horarium.",
        table(("event", "standard keys", "additional keys"), rows),
        "## Run events",
        f"The events of a run that a schedule started begin with `ScheduleTriggered`, which records the cause in the "
        f"keys {codes(sorted(LINEAGE_KEYS))}. `node.*` are events of workflow steps, recorded on the root run.",
        "Events caused by a request (trigger, cancel, terminate, report) also have `principal`, `request_id`, `source` "
        "and `reason`. If a target reports with the token of its run, `principal` is `run:` and the run ID.",
        table(("event", "of a run", "of a step"), _run_events()),
    )


def _run_events() -> list[tuple[str, str, str]]:
    split = [(kind.value.rpartition(".")[2], kind.value) for kind in RunEventType]
    words = dict.fromkeys(word for word, _ in split)
    known = {name for _, name in split}

    def cell(name: str) -> str:
        return code(name) if name in known else "–"

    plain = [word for word in words if word in known]
    rows = [(word.replace("_", " "), cell(f"run.{word}"), cell(f"node.{word}")) for word in words if word not in plain]
    return [*((word.replace("_", " "), code(word), "–") for word in plain), *rows]


# ── metrics ──────────────────────────────────────────────────────────────────────────────────────────


def metrics_page() -> str:
    metrics = Metrics()
    queue_depth = dict.fromkeys((state.value for state in RunState if state not in FINAL), 0)
    metrics.set_installation(Installation(0, 0, 0, 0, queue_depth, 0, 0, 0, 0))
    exported = {
        "every process": metrics.registry,
        "`up`, `worker`": metrics.engine,
        "`up`, `server`": metrics.installation,
    }
    rows = []
    for who, family in ((who, family) for who, registry in exported.items() for family in registry.collect()):
        labels = sorted({name for sample in family.samples for name in sample.labels} - {"le"})
        name = f"{family.name}_total" if family.type == "counter" else family.name
        rows.append((code(name), family.type, codes(labels) or "–", who, family.documentation))
    return page(
        "Metrics",
        "`GET /metrics` returns metrics in the Prometheus text format. The request needs a token of the default "
        "namespace, unless the setting `metrics_open` is on.",
        "`up` and `server` serve metrics with the API. A `worker` serves them on `metrics_host` and `metrics_port` "
        "(default 127.0.0.1:9465) and needs no token on loopback.",
        "Each process exports metrics about its work. The gauges of `up` and `server` cover the whole installation. "
        "They are read from the database at most every 5 seconds and omitted while it does not respond. For alerts, "
        "scrape one server.",
        "No label identifies a schedule, run or tenant, so the number of series does not grow with them. Series with "
        "known labels exist from the start, with the value 0.",
        table(("metric", "type", "labels", "exported by", "description"), rows),
        "## Alerts",
        "These expressions need one server as the scrape target:",
        table(
            ("expression", "meaning"),
            [
                (code("horarium_newest_tick_age_seconds > 60"), "No ticker is running."),
                (code("horarium_oldest_undecided_seconds > 60"), "Scheduling is delayed."),
                (
                    code("horarium_schedules_failing > 0"),
                    "Schedules are failing. List them with `horarium schedule health`.",
                ),
                (code("horarium_schedules_broken > 0"), "Schedules are broken and do not fire."),
                (code("sum(horarium_queue_depth) > 10000"), "Runs start faster than they end."),
                (code("absent(horarium_schedules_failing)"), "The database or all servers are unavailable."),
            ],
        ),
        "## Labels",
        table(
            ("label", "values"),
            [
                (code("origin"), codes(Origin)),
                (code("reason"), codes(Reason)),
                (
                    code("state"),
                    codes(sorted(FINAL))
                    + " for `horarium_run_ends_total`; all other states for `horarium_queue_depth`",
                ),
            ],
        ),
        "## Buckets",
        table(
            ("histogram", "upper bounds in seconds"),
            [_buckets(each) for each in (metrics.drift, metrics.start_delay, metrics.write_seconds)],
        ),
    )


def _buckets(histogram: Histogram) -> tuple[str, str]:
    [family] = histogram.collect()
    bounds = [sample.labels["le"] for sample in family.samples if "le" in sample.labels]
    return code(family.name), " ".join(bounds)


# ── delivery ─────────────────────────────────────────────────────────────────────────────────────────


def delivery_page() -> str:
    # Celery is an optional extra, but a shipped kind.
    brokers = {"default": {"broker": "memory://"}}
    registry, _ = make_registry(Settings(celery_connections=brokers), SystemClock(), TaskRegistry())
    rows = [
        (code(row.kind), "yes" if row.honours_key else "no", row.promise[0].upper() + row.promise[1:] + ".")
        for row in registry.documented_delivery()
    ]
    waiting = [state.value for state in RunState if state not in FINAL]
    return page(
        "Delivery",
        "Each kind of action has a launcher, which delivers a run to its target. The delivery guarantee depends on "
        "whether the target honours the idempotency key. See [Exactly once](../explanation/exactly-once.md).",
        table(("kind", "honours the key", "guarantee"), rows),
        "## Run states",
        table(("state", "final"), [*((code(s), "no") for s in waiting), *((code(s), "yes") for s in sorted(FINAL))]),
    )


# ── all pages ──────────────────────────────────────────────────────────────────────────────────────

PAGES: Mapping[str, Callable[[], str]] = {
    "schedule.md": schedule_page,
    "settings.md": settings_page,
    "events.md": events_page,
    "metrics.md": metrics_page,
    "cli.md": cli_page,
    "http.md": http_page,
    "delivery.md": delivery_page,
}


def main(arguments: Sequence[str]) -> int:
    stale = []
    for name, write in PAGES.items():
        path, text = FOLDER / name, write()
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(name)
            if "--check" not in arguments:
                path.write_text(text, "utf-8")
    print(
        "\n".join(f"{name} {'is out of date' if '--check' in arguments else 'written'}" for name in stale) or "current"
    )
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
