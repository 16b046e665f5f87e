"""The command `horarium run logs`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from horarium.cli.present import cell, printable, show_document
from horarium.cli.remote import Remote, with_remote
from horarium.cli.render import Format, show_json, talk

if TYPE_CHECKING:
    from horarium.features.runs.model import RunLogLine

RunId = Annotated[str, typer.Argument(metavar="RUN_ID", show_default=False, help="Run ID.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Print new lines until the run ends.")]
Times = Annotated[bool, typer.Option("--times", help="Prefix each line with its time, attempt and stream.")]
After = Annotated[
    int, typer.Option("--after", metavar="NUMBER", min=0, help="Print only lines with a greater line number.")
]


@with_remote
def logs_command(remote: Remote, run_id: RunId, follow: Follow = False, times: Times = False, after: After = 0) -> None:
    """Print the log of a run: its standard output, standard error and log records.

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
        talk(f"no {'more ' if after else ''}logs of run {run_id}")


def _show(remote: Remote, lines: Iterable[RunLogLine], *, times: bool, after: int) -> int:
    """Print lines and return the number of the last one; report dropped lines."""
    for line in lines:
        if remote.output is not Format.TABLE:
            show_json(dict(line.raw))
        else:
            if (missing := line.number - after - 1) > 0:
                talk(f"… {missing} lines dropped; the setting run_log_bytes limits the log of a run")
            typer.echo(_told(line) if times else printable(line.text))
        after = line.number
    return after


def _told(line: RunLogLine) -> str:
    return f"{cell(line.at)} {line.attempt + 1} {line.stream:6} {printable(line.text)}"
