"""The command `horarium overview`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from horarium.cli.pages import AllNamespaces, listed_namespace
from horarium.cli.present import show_columns, show_document
from horarium.cli.remote import Remote, with_remote
from horarium.cli.render import Format, talk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from horarium.features.cluster.model import Overview

app = typer.Typer(add_completion=False)

_OF_ALL = ("run list", "approval list", "schedule health")
_HEALTH = ("failing", "stale", "late")
_STATES = {"held": "buffered", "launching": "dispatching"}
_RUNS = ("held", "ready", "launching", "queued", "running")


@app.command("overview")
@with_remote
def overview_command(remote: Remote, all_namespaces: AllNamespaces = False) -> None:
    """Show counts of schedules, approvals and runs that may need attention, with the command that lists each.

    A + marks a lower bound. A ? means that the count is not available because too many occurrences are due.

    Example: horarium overview
    """
    found = remote.client.get_overview(namespace=listed_namespace(all_namespaces))
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
