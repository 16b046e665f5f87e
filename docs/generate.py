"""Writes the reference pages that can be read off the code: settings, events, metrics, command line, HTTP, delivery.

    python docs/generate.py            write them
    python docs/generate.py --check    say which are out of date; exit code 1 if any is

A test compares the pages with what this writes, so a knob, a route or a command cannot change without its page.
"""

from __future__ import annotations

import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from prometheus_client import Histogram
from pydantic_core import PydanticUndefined

from horarium.api.permissions import PERMISSIONS, Open
from horarium.cli.main import app as program
from horarium.clock import SystemClock
from horarium.launchers.tasks import TaskRegistry
from horarium.operations.caller import Caller, Permission, Role
from horarium.schedule.event import ADDED_KEYS, CONTRACT_KEYS, LINEAGE_KEYS, EventType, RunEventType
from horarium.schedule.reason import Reason
from horarium.schedule.run import FINAL, Origin, RunState
from horarium.serve.hands import make_registry
from horarium.serve.service import open_service
from horarium.settings import Settings, variable
from horarium.telemetry.metrics import Metrics
from typer.main import get_command

FOLDER = Path(__file__).parent / "reference"
WIDTH = 120
_NOTICE = "<!-- Written by docs/generate.py from the code. Edit the code, then run it again. -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: object) -> str:
    return f"`{text}`"


def codes(names: Iterable[str]) -> str:
    return " ".join(code(name) for name in names)


def page(title: str, *parts: str) -> str:
    """Prose is filled to the width of a line; tables, headings and blocks are left alone."""
    return "\n\n".join([f"# {title}", _NOTICE, *(_filled(part) for part in parts if part)]) + "\n"


def _filled(part: str) -> str:
    prose = not part.startswith(("|", "#", "```", "<"))
    return textwrap.fill(part, WIDTH, break_long_words=False, break_on_hyphens=False) if prose else part


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────

_SECTION = re.compile(r"# ── (.+?) ─|^    (\w+): ", re.MULTILINE)


def settings_page() -> str:
    parts: list[str] = []
    for heading, names in _sections().items():
        rows = [(code(name), _default(name), code(variable(name)), _meaning(name)) for name in names]
        parts += [f"## {heading[0].upper()}{heading[1:]}", table(("setting", "default", "variable", "meaning"), rows)]
    return page(
        "Settings",
        "A flag wins over the environment, the environment over the file `horarium.toml` in the working directory "
        "(or the file that `HORARIUM_CONFIG` names), the file over the default. `horarium config` prints the values "
        "in force and where each comes from. In the file the names are those of the first column; maps such as "
        "`commands` are tables there, and JSON in a variable.",
        *parts,
    )


def _sections() -> dict[str, list[str]]:
    """The headings are the comments between the fields."""
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
    extra = [", ".join(bounds), f"also read as {codes(also)}" if also else ""]
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
        "A schedule has one audit stream, numbered from 1 without gaps: `GET /api/schedules/{schedule_id}/history`. "
        "A run has a stream of its own: `GET /api/runs/{run_id}/events`. A payload has no other keys than these, and "
        "a key without a value is left out. `command_context` holds `principal`, `request_id`, `source` and `reason` "
        "of whoever asked; events that happen by themselves have none.",
        "## The stream of a schedule",
        "The keys of the contract are those of the Durable Workflow schedule contract; ours stand beside them.",
        table(("event", "keys of the contract", "our keys"), rows),
        "## The stream of a run",
        f"A run that a schedule started begins with `ScheduleTriggered`, which says why it exists, with the keys "
        f"{codes(sorted(LINEAGE_KEYS))}. `node.*` tell of the steps of a workflow, on the stream of its root.",
        table(("event", "about"), [(code(kind.value), _about(kind)) for kind in RunEventType]),
    )


def _about(kind: RunEventType) -> str:
    head, _, _ = kind.value.partition(".")
    return {"run": "the run", "node": "a step"}.get(head, "the run")


# ── metrics ──────────────────────────────────────────────────────────────────────────────────────────


def metrics_page() -> str:
    metrics = Metrics()
    rows = []
    for family in metrics.registry.collect():
        labels = sorted({name for sample in family.samples for name in sample.labels} - {"le"})
        name = f"{family.name}_total" if family.type == "counter" else family.name
        rows.append((code(name), family.type, codes(labels) or "–", family.documentation))
    return page(
        "Metrics",
        "`GET /metrics` in the text format of Prometheus. No label names a schedule, a run or a tenant, so the number "
        "of series does not grow with them. Series whose labels are known beforehand exist from the start, at zero.",
        table(("metric", "type", "labels", "meaning"), rows),
        "## Labels",
        table(
            ("label", "values"),
            [
                (code("origin"), codes(Origin)),
                (code("reason"), codes(Reason)),
                (
                    code("state"),
                    codes(sorted(FINAL)) + " for `horarium_run_ends_total`; the others for the queue depth",
                ),
            ],
        ),
        "## Buckets",
        table(
            ("histogram", "upper bounds in seconds"), [_buckets(each) for each in (metrics.drift, metrics.start_delay)]
        ),
    )


def _buckets(histogram: Histogram) -> tuple[str, str]:
    [family] = histogram.collect()
    bounds = [sample.labels["le"] for sample in family.samples if "le" in sample.labels]
    return code(family.name), " ".join(bounds)


# ── the command line ─────────────────────────────────────────────────────────────────────────────────


def cli_page() -> str:
    root: Any = get_command(program)
    found = list(_commands(root, ("horarium",)))
    shared = _shared_options(command for _, command in found)
    parts = [part for path, command in found for part in _command(path, command, shared)]
    talk = (_clean(root.epilog or "").split("Example:")[0]).strip()
    return page(
        "The command line",
        f"{_clean(root.help or '')} `--help` after any command says the same as this page. Data goes to stdout, talk "
        f"to stderr. {talk}",
        "## Options of commands that speak to a server",
        table(_OPTION_HEAD, [_option(param) for param in shared.values()]),
        *parts,
    )


_OPTION_HEAD = ("option", "default", "meaning")
_SERVER_OPTIONS = ("--server", "--token", "--namespace", "--data-dir")


def _commands(command: Any, path: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], Any]]:
    children: Mapping[str, Any] = getattr(command, "commands", {})
    if not children:
        yield path, command
    for name, child in children.items():
        yield from _commands(child, (*path, name))


def _shared_options(commands: Iterable[Any]) -> dict[str, Any]:
    """Those that nearly every command of a server has: told once."""
    for command in commands:
        options = {param.opts[0]: param for param in command.params}
        if {"--server", "--token"} <= options.keys():
            return {name: options[name] for name in _SERVER_OPTIONS if name in options}
    return {}


def _command(path: tuple[str, ...], command: Any, shared: Mapping[str, Any]) -> list[str]:
    text, _, example = _clean(command.help or "").partition("Example: ")
    speaks = {"--server", "--token"} <= {param.opts[0] for param in command.params}
    own = [param for param in command.params if not (speaks and param.opts[0] in shared)]
    arguments = [param for param in own if param.param_type_name == "argument"]
    usage = " ".join([*path, *(_argument(param) for param in arguments)])
    rows = [_option(param) for param in own if param.param_type_name != "argument"]
    return [
        f"## {' '.join(path)}",
        f"```text\n{usage}{' [options]' if command.params else ''}\n```",
        text.strip() + (" Speaks to a server." if speaks else ""),
        table(_OPTION_HEAD, rows) if rows else "",
        f"Example: `{example.strip()}`" if example else "",
    ]


def _argument(param: Any) -> str:
    name = param.metavar or param.name.upper()
    return name if param.required or name.startswith("[") else f"[{name}]"


def _option(param: Any) -> tuple[str, str, str]:
    values = getattr(param.type, "choices", None)
    metavar = "" if param.is_flag else f" {param.metavar or _choices(values) or param.type.name.upper()}"
    return ", ".join(code(opt + metavar) for opt in param.opts), _shown_default(param), _clean(param.help or "")


def _choices(values: Sequence[object] | None) -> str:
    return "" if not values else "|".join(str(getattr(value, "value", value)) for value in values)


def _shown_default(param: Any) -> str:
    if isinstance(param.show_default, str):
        return param.show_default
    plain = param.default is None or param.is_flag or callable(param.default) or param.show_default is False
    return "–" if plain or param.default in ((), []) else code(getattr(param.default, "value", param.default))


def _clean(text: str) -> str:
    return " ".join(text.split())


# ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────


def http_page() -> str:
    document = _openapi()
    by_tag: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    return page(
        "The HTTP interface",
        "JSON in, JSON out, times in RFC 3339 and UTC. The service itself tells all of it as OpenAPI at "
        "`/openapi.json`, and as a page at `/docs`.",
        "Every request but the open ones carries `Authorization: Bearer …`. `X-Namespace` chooses a namespace; without "
        "it, it is that of the token. A write may carry an `Idempotency-Key`: repeated with the same body it has the "
        "same answer and no second effect. Where `If-Match` is listed, the `ETag` of an earlier answer makes the write "
        "conditional.",
        "## Who may do what",
        table(("role", *Permission), [_role(role) for role in Role]),
        *(part for tag, operations in by_tag.items() for part in _tag(tag, operations)),
        "## Answers",
        "What is not 2xx is `application/problem+json` with `reason`, one word for a program, `message`, one sentence "
        "for a person, and where fields are wrong `errors`.",
        table(("status", "means"), _answers(document)),
    )


def _openapi() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings(data_dir=Path(directory), log_level="error")
        with open_service(settings) as service:
            return service.api.openapi()


def _role(role: Role) -> tuple[str, ...]:
    caller = Caller("x", role)
    return code(role), *("yes" if caller.may(permission) else "–" for permission in Permission)


def _tag(tag: str, operations: Iterable[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    rows = [
        (code(f"{method} {path}"), _needs(method, path), _told(operation)) for method, path, operation in operations
    ]
    return [f"## {tag[0].upper()}{tag[1:]}", table(("request", "needs", "about"), rows)]


def _needs(method: str, path: str) -> str:
    needed = {(m, re.sub(r":\w+}", "}", p)): permission for (m, p), permission in PERMISSIONS.items()}[method, path]
    return "nothing" if isinstance(needed, Open) else needed.value


_UNLISTED = {"X-Namespace", "Idempotency-Key"}


def _told(operation: Mapping[str, Any]) -> str:
    described = operation.get("description") or ""
    text = _clean(re.sub(r"Needs the permission to \w+\.", "", described)) or f"{operation['summary'].capitalize()}."
    given = [each for each in operation.get("parameters", ()) if each["name"] not in _UNLISTED and each["in"] != "path"]
    parameters = [f"{code(each['name'])}{_described(each)}" for each in given]
    return text + (f" Takes {', '.join(parameters)}." if parameters else "")


def _described(parameter: Mapping[str, Any]) -> str:
    text = _clean(parameter.get("description") or "").rstrip(".")
    return f" ({text})" if text else ""


def _answers(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, answer in operation["responses"].items():
                if not status.startswith("2"):
                    found.setdefault(status, answer["description"])
    return sorted((code(status), text) for status, text in found.items())


# ── delivery ─────────────────────────────────────────────────────────────────────────────────────────


def delivery_page() -> str:
    registry, _ = make_registry(Settings(), SystemClock(), TaskRegistry())
    rows = [
        (code(row.kind), "yes" if row.honours_key else "no", row.promise[0].upper() + row.promise[1:] + ".")
        for row in registry.documented_delivery()
    ]
    waiting = [state.value for state in RunState if state not in FINAL]
    return page(
        "Delivery",
        "Each kind of action has a launcher, which gives a run to its target. What is promised about a delivery that "
        "may have arrived depends on the target. [Exactly once](../explanation/exactly-once.md) says why.",
        table(("kind", "honours the key", "promise"), rows),
        "## States of a run",
        table(("state", "final"), [*((code(s), "no") for s in waiting), *((code(s), "yes") for s in sorted(FINAL))]),
    )


# ── all of them ──────────────────────────────────────────────────────────────────────────────────────

PAGES: Mapping[str, Callable[[], str]] = {
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
