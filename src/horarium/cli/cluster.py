"""The command `horarium cluster`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from horarium.cli.present import NOTHING, printable, show_columns, show_document
from horarium.cli.reading import refuse
from horarium.cli.remote import ExitCode, Remote, with_remote
from horarium.cli.render import Format, talk
from horarium.decision.process_state import ProcessState

if TYPE_CHECKING:
    from horarium.features.cluster.model import Cluster, ClusterProcess

app = typer.Typer(add_completion=False)

_PAUSE = 2.0
_CLEAR = "\x1b[2J\x1b[H"
# The roles of every engine, shown as one word.
_ENGINE = ("ticker", "janitor", "dispatcher", "follower", "advancer", "deliverer")
_PROCESSES = ("Process", "State", "Roles", "Version", "Schema", "Started", "Last Heartbeat", "Runs", "Clock")
_QUEUES = ("Kind", "Queue", "Ready", "Queued", "Buffered")


@app.command("cluster")
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
    from horarium.cli.waiting import Patience, steadily, until_interrupted

    if remote.output in (Format.JSON, Format.YAML):
        refuse(f"-o {remote.output.value} does not support --watch; use -o jsonl")
    patience = Patience()
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
