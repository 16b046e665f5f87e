"""`horarium run logs`: what a run printed and logged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from horarium.cli.present import cell, printable, show_document
from horarium.cli.remote import Remote, with_remote
from horarium.cli.render import Format, show_json, talk

if TYPE_CHECKING:
    from horarium.wire.runs import RunLogLine

RunId = Annotated[str, typer.Argument(metavar="RUN_ID", show_default=False, help="Which run.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Wait for more until the run has ended.")]
Times = Annotated[bool, typer.Option("--times", help="Before each line its time, its attempt and its stream.")]
After = Annotated[int, typer.Option("--after", metavar="NUMBER", min=0, help="Only lines with a greater number.")]


@with_remote
def logs_command(remote: Remote, run_id: RunId, follow: Follow = False, times: Times = False, after: After = 0) -> None:
    """What a run printed and logged: the last lines of it, as much as the server keeps.

    Example: horarium run logs 01JQ8Z6H4M8X2V0T1R3S5W7Y9B --follow
    """
    if remote.output in (Format.JSON, Format.YAML) and not follow:
        show_document(remote.client.get_run_logs(run_id, after=after).raw, remote.output, [])
        return
    lines = (
        remote.client.follow_run_logs(run_id, after=after)
        if follow
        else remote.client.iter_run_logs(run_id, after=after)
    )
    last = _show(remote, lines, times=times, after=after)
    if last == after and remote.output is Format.TABLE:
        talk(f"run {run_id} has said nothing{' more' if after else ''}")


def _show(remote: Remote, lines: Iterable[RunLogLine], *, times: bool, after: int) -> int:
    """The number of the last line. Numbers that are missing are lines that were dropped, and that is said."""
    for line in lines:
        if remote.output is not Format.TABLE:
            show_json(dict(line.raw))
        else:
            if (missing := line.number - after - 1) > 0:
                talk(f"… {missing} lines were dropped: a run keeps its last ones, see the setting run_log_bytes")
            typer.echo(_told(line) if times else printable(line.text))
        after = line.number
    return after


def _told(line: RunLogLine) -> str:
    return f"{cell(line.at)} {line.attempt + 1} {line.stream:6} {printable(line.text)}"
