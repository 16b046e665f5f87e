"""Bulk operations: select the objects, confirm their number, apply the action, show the outcomes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from horarium.platform.cli.remote import ExitCode, Remote, ask_whether_meant, if_meant
from horarium.platform.cli.streams import Format, counting, pairs, refuse, show_columns, show_document, show_json, talk

if TYPE_CHECKING:
    from horarium.features.schedules.change_model import BulkChange, BulkChanges, BulkStop, BulkStops


D = TypeVar("D", "BulkChanges", "BulkStops")

_PANEL = "Bulk selection"
# As many as a request takes.
_AT_ONCE = 100
_UNDONE = frozenset({"failed", "skipped", "buffer_full"})

Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="NAME=VALUE",
        show_default=False,
        help="Select all with this label; repeatable, all must match.",
        rich_help_panel=_PANEL,
    ),
]
Everything = Annotated[bool, typer.Option("--all", help="Select all of the namespace.", rich_help_panel=_PANEL)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.", rich_help_panel=_PANEL)]


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects with all of the labels, or all objects."""

    labels: dict[str, str] | None
    everything: bool

    def fields(self) -> dict[str, Any]:
        return {"labels": self.labels, "everything": self.everything or None}


def selection(one: str | None, labels: list[str] | None, everything: bool) -> str | Selection:
    """Return the one object that is named, or a selection of many; --yes is redundant for one."""
    if one is not None:
        if labels or everything:
            refuse("an ID cannot be combined with --label or --all")
        return one
    if labels and everything:
        refuse("--all cannot be combined with --label")
    if not labels and not everything:
        refuse("give an ID, --label or --all")
    return Selection(pairs("--label", labels) if labels else None, everything)


def change_schedules(
    remote: Remote, action: str, chosen: Selection, yes: bool, confirm: bool = False, **fields: Any
) -> None:
    """Change exactly the schedules that were counted. --yes does not confirm very many runs."""
    from horarium.core.decision.decide import MOST_AT_ONCE

    client = remote.client
    # With all fields, so that errors are reported before the confirmation.
    wish = {**chosen.fields(), **fields, "dry_run": True}
    pages = _pages(lambda token: client.bulk_schedules(action, next_page_token=token, **wish))
    ids = [each.schedule_id for page in pages for each in page.outcomes]
    if _is_agreed(len(ids), action, "schedule", yes):
        if action == "trigger" and len(ids) > MOST_AT_ONCE and not confirm:
            ask_whether_meant(len(ids))
            confirm = True

        def act(part: Sequence[str]) -> BulkChanges:
            return if_meant(lambda meant: client.bulk_schedules(action, ids=part, confirm=meant, **fields), confirm)

        done = _in_parts(ids, act)
        _show(remote, action, [each for page in done for each in page.outcomes], "schedule_id", "Schedule ID")


def stop_runs(remote: Remote, action: str, chosen: Selection, yes: bool) -> None:
    client = remote.client
    pages = _pages(lambda token: client.bulk_runs(action, **chosen.fields(), dry_run=True, next_page_token=token))
    ids = [each.run_id for page in pages for each in page.outcomes]
    if _is_agreed(len(ids), action, "open run", yes):
        done = _in_parts(ids, lambda part: client.bulk_runs(action, ids=part))
        _show(remote, action, [each for page in done for each in page.outcomes], "run_id", "Run ID")


def _pages(ask: Callable[[str | None], D]) -> Iterator[D]:
    token: str | None = None
    while True:
        page = ask(token)
        yield page
        if page.next_page_token is None or page.next_page_token == token:
            return
        token = page.next_page_token


def _in_parts(ids: Sequence[str], ask: Callable[[Sequence[str]], D]) -> Iterator[D]:
    with counting("done") as count:
        for start in range(0, len(ids), _AT_ONCE):
            part = ids[start : start + _AT_ONCE]
            yield ask(part)
            count(start + len(part))


def _is_agreed(count: int, action: str, what: str, yes: bool) -> bool:
    if count == 0:
        talk(f"no matching {what}s")
        return False
    agree(
        f"{action.capitalize()} {count} {what}{'' if count == 1 else 's'}?",
        yes,
        deleted=count if action == "delete" else 0,
    )
    return True


def agree(question: str, yes: bool, deleted: int = 0) -> None:
    """Ask before a change. The deletion of several objects needs their number."""
    if yes:
        return
    if not sys.stdin.isatty():
        refuse(f"{question} No terminal for the confirmation; use --yes")
    if not is_confirmed(question, deleted):
        talk("cancelled; nothing changed")
        raise typer.Exit(ExitCode.NO)


def is_confirmed(question: str, deleted: int) -> bool:
    if deleted < 2:
        return typer.confirm(question, err=True)
    typed = str(typer.prompt(f"{question} Enter {deleted} to confirm", default="", show_default=False, err=True))
    return typed.strip().replace(",", "") == str(deleted)


def _show(remote: Remote, action: str, outcomes: Sequence[BulkChange | BulkStop], member: str, title: str) -> None:
    match remote.output:
        case Format.TABLE:
            rows = [(getattr(each, member), each.outcome, each.reason) for each in outcomes]
            show_columns((title, "Outcome", "Reason"), rows)
        case Format.JSONL:
            for each in outcomes:
                show_json(dict(each.raw))
        case Format.JSON | Format.YAML:
            whole = {"action": action, "outcomes": [dict(each.raw) for each in outcomes]}
            show_document(whole, remote.output, [])
    undone = sum(each.outcome in _UNDONE for each in outcomes)
    talk(f"{action}: {len(outcomes) - undone} of {len(outcomes)} done")
    if undone:
        raise typer.Exit(ExitCode.NO)
