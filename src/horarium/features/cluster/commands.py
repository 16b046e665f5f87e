"""The commands `horarium overview`, `horarium health` and `horarium cluster`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.core.decision.presence import ProcessState
from horarium.platform.cli.lists import AllNamespaces, scope_of
from horarium.platform.cli.remote import ExitCode, Remote, with_remote
from horarium.platform.cli.streams import NOTHING, Format, printable, refuse, show_columns, show_document, talk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from horarium.features.cluster.model import Cluster, ClusterProcess, Overview
    from horarium.features.tenants.model import Health


overview_app = typer.Typer(add_completion=False)

_OF_ALL = ("run list", "approval list", "schedule health")
_HEALTH = ("failing", "stale", "late")
_STATES = {"held": "buffered", "launching": "dispatching"}
_RUNS = ("held", "ready", "launching", "queued", "running")


@overview_app.command("overview")
@with_remote
def overview_command(remote: Remote, all_namespaces: AllNamespaces = False) -> None:
    """Show counts of schedules, approvals and runs that may need attention, with the command that lists each.

    A + marks a lower bound. A ? means that the count is not available because too many occurrences are due.

    Example: horarium overview
    """
    found = remote.client.get_overview(namespace=scope_of(all_namespaces))
    if remote.output is Format.TABLE:
        show_columns(("Item", "Count", "Command"), _listed(_rows(found), all_namespaces))
        talk("all namespaces" if all_namespaces else f"namespace {remote.namespace}")
    else:
        show_document(found.raw, remote.output, [])


def _listed(rows: Iterator[tuple[str, str, str]], all_namespaces: bool) -> Iterator[tuple[str, str, str]]:
    """Yield rows with the command for all namespaces, if there is one."""
    for what, count, command in rows:
        unwell = "schedule health --unwell" if command.startswith("schedule list --health") else command
        of_all = f"{unwell} --all-namespaces" if unwell.startswith(_OF_ALL) else ""
        yield what, count, of_all if all_namespaces else command


def _rows(found: Overview) -> Iterator[tuple[str, str, str]]:
    for status in found.schedules.__struct_fields__:
        count = _count(found, f"schedules.{status}", getattr(found.schedules, status))
        yield f"{status} schedules", count, f"schedule list --status {status}"
    for word in _HEALTH:
        yield f"{word} schedules", _count(found, word, getattr(found, word)), f"schedule list --health {word}"
    asked = _count(found, "waiting_for_approval", found.waiting_for_approval)
    yield "pending approvals", asked, "approval list"
    missed = _count(found, "missed_lately", found.missed_lately)
    yield "missed occurrences (24 h)", missed, 'agenda --from "24h ago" --to now --reason missed'
    ended = _count(found, "failed_24h", found.failed_24h)
    yield "failed runs (24 h)", ended, 'run list --state unsuccessful --finished-after "24h ago"'
    for state in _RUNS:
        yield (
            f"{_STATES.get(state, state)} runs",
            _count(found, state, getattr(found, state)),
            f"run list --state {state}",
        )


def _count(found: Overview, name: str, count: int) -> str:
    """Format a count; a bounded 0 is unknown."""
    is_bounded = name in found.bounded
    return "?" if is_bounded and count == 0 else f"{count:,}{'+' if is_bounded else ''}"


health_app = typer.Typer(add_completion=False)

# The loop of a worker that dispatches runs.
_DISPATCHER = "dispatcher"
_PARTS = {"migrated": "database", "database": "database", "ticking": "ticker", "deciding": "decisions"}
# Covered by the health of the schedules.
_LEFT_OUT = frozenset({"outcomes"})


@dataclass(frozen=True, slots=True)
class HealthPart:
    """A part of the service; `ok` is None if the caller may not read it."""

    name: str
    ok: bool | None
    detail: str
    remedy: str | None = None

    @property
    def word(self) -> str:
        return "not known" if self.ok is None else "ok" if self.ok else "failing"


@health_app.command("health")
@with_remote
def health_command(remote: Remote, all_namespaces: AllNamespaces = False) -> None:
    """Show the health of the service: database, ticker, decisions and worker; and the number of unhealthy schedules.

    Exit code 0: the service is healthy; 1: a part is failing; 3: server unreachable. Unhealthy schedules do not affect
    the exit code; `horarium schedule health` lists them.

    Example: horarium health
    """
    found = remote.client.readiness()
    parts, unwell = [*_checks(found), _worker(remote)], _unwell(remote, scope_of(all_namespaces))
    document = {"status": "ok" if _good(parts) else "failing", "version": found.version, "tzdata": found.tzdata}
    told = [{"name": each.name, "status": each.word, "detail": each.detail, "remedy": each.remedy} for each in parts]
    lines = [
        ("", f"server: ok ({found.version}, tzdata {found.tzdata})"),
        *(("", _text(each)) for each in parts),
        ("", f"schedules: {_counted(unwell)}"),
    ]
    show_document({**document, "parts": told, "schedules": unwell}, remote.output, lines)
    if not _good(parts):
        raise typer.Exit(ExitCode.NO)


def _good(parts: list[HealthPart]) -> bool:
    return all(each.ok is not False for each in parts)


def _text(part: HealthPart) -> str:
    return f"{part.name}: {part.word} ({part.detail}{f'; {part.remedy}' if part.remedy else ''})"


def _checks(found: Health) -> list[HealthPart]:
    return [
        HealthPart(_PARTS.get(check.name, check.name), check.passed, check.detail or "", check.remedy)
        for check in found.checks
        if check.name not in _LEFT_OUT
    ]


def _unwell(remote: Remote, namespace: str | None) -> dict[str, int] | None:
    """Count the unhealthy schedules by status; None if the caller may not read them."""
    from horarium.platform.client.errors import ClientError

    try:
        page = remote.client.list_schedule_health(unwell=True, namespace=namespace)
    except ClientError:
        if namespace is not None:  # explicitly requested
            raise
        return None
    return dict(sorted(Counter(str(each.status) for each in page).items()))


def _counted(unwell: dict[str, int] | None) -> str:
    if unwell is None:
        return "not known (requires a token of the namespace)"
    if not unwell:
        return "ok (all healthy, none awaiting approval)"
    return f"{', '.join(f'{count} {word}' for word, count in unwell.items())} (details: horarium schedule health)"


def _worker(remote: Remote) -> HealthPart:
    from horarium.platform.client.errors import Forbidden, Unauthorized

    try:
        found = _loops(remote).get(_DISPATCHER)
    except (Forbidden, Unauthorized):
        return HealthPart("worker", None, "requires an admin token")
    if found is None:
        return HealthPart("worker", False, "no worker is active", "start `horarium up` or `horarium worker`")
    detail = f"last activity {found.get('seconds_ago', 0):.1f} s ago"
    ok = bool(found.get("healthy"))
    return HealthPart("worker", ok, detail, None if ok else "check the log of the worker")


def _loops(remote: Remote) -> dict[str, Any]:
    from horarium.platform.client.call import Call

    # 503 is an answer: the ticker is stuck.
    answer = remote.send(Call("GET", "/admin/liveness", dict[str, Any], also=(503,)))
    loops = answer.get("subsystems")
    return loops if isinstance(loops, dict) else {}


cluster_app = typer.Typer(add_completion=False)

_PAUSE = 2.0
_CLEAR = "\x1b[2J\x1b[H"
# The roles of every engine, shown as one word.
_ENGINE = ("ticker", "janitor", "dispatcher", "follower", "advancer", "deliverer")
_PROCESSES = ("Process", "State", "Roles", "Version", "Schema", "Started", "Last Heartbeat", "Runs", "Clock")
_QUEUES = ("Kind", "Queue", "Ready", "Queued", "Buffered")


@cluster_app.command("cluster")
@with_remote
def cluster_command(
    remote: Remote,
    watched: Annotated[bool, typer.Option("--watch", "-w", help="Refresh every 2 seconds until Ctrl-C.")] = False,
) -> None:
    """Show the processes that use the database, their versions, the lag and the queues.

    Requires an admin of the default namespace. A process is silent after two missed heartbeats and gone after 30
    seconds; processes that shut down normally are not shown. Exit code 1: there are warnings, printed below the tables.

    Example: horarium cluster --watch
    """
    if watched:
        _watch(remote)
        return
    found = remote.client.get_cluster()
    _show(found, remote.output)
    if found.notes:
        raise typer.Exit(ExitCode.NO)


def _watch(remote: Remote) -> None:
    from horarium.platform.cli.waiting import PollingLimit, steadily, until_interrupted

    if remote.output in (Format.JSON, Format.YAML):
        refuse(f"-o {remote.output.value} does not support --watch; use -o jsonl")
    patience = PollingLimit()
    with until_interrupted():
        while True:
            found = steadily(remote.client.get_cluster, patience)
            if remote.output is Format.TABLE and sys.stdout.isatty():
                typer.echo(_CLEAR, nl=False)
            _show(found, remote.output)
            patience.sleep(_PAUSE)


def _show(found: Cluster, output: Format) -> None:
    if output is not Format.TABLE:
        show_document(found.raw, output, [])
        return
    show_columns(_PROCESSES, map(_process_cells, found.processes))
    if found.workers:
        typer.echo()
        workers = ((each.name, each.state, f"{each.seconds_ago:.0f} s ago", each.runs) for each in found.workers)
        show_columns(("Worker", "State", "Last Seen", "Runs"), workers)
    if found.queues:
        typer.echo()
        show_columns(_QUEUES, ((each.kind, each.queue, each.ready, each.queued, each.held) for each in found.queues))
    typer.echo()
    for line in _lines(found):
        typer.echo(printable(line))
    for note in found.notes:
        talk(printable(note))


def _lines(found: Cluster) -> Iterable[str]:
    oldest = found.oldest_ready_seconds
    yield f"schema: {found.schema_revision or NOTHING}"
    yield f"oldest undecided occurrence: {found.tick_lag_seconds:.1f} s"
    yield f"oldest ready run: {'none' if oldest is None else f'{oldest:.1f} s'}"
    if found.more:
        yield "lists and counts are incomplete: too many entries"


def _process_cells(each: ClusterProcess) -> tuple[object, ...]:
    offset = each.clock_offset_seconds
    return (
        each.name,
        each.state,
        _roles(each.roles),
        each.version,
        each.schema_revision,
        each.started_at,
        f"{each.seconds_ago:.0f} s ago",
        each.runs if each.state is not ProcessState.GONE or each.runs else None,
        None if offset is None else f"{offset:+.3f} s",
    )


def _roles(roles: Iterable[str]) -> str:
    given = tuple(roles)
    if not set(_ENGINE) <= set(given):
        return " ".join(given)
    return " ".join([*(each for each in given if each not in _ENGINE), "engine"])
