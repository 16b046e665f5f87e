"""`horarium health`: whether the service does its work, part by part."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from horarium.cli.pages import AllNamespaces, listed_namespace
from horarium.cli.present import show_document
from horarium.cli.remote import ExitCode, Remote, with_remote

if TYPE_CHECKING:
    from horarium.wire.service import Health

app = typer.Typer(add_completion=False)

# The loop that hands runs out: what a worker is there for.
_DISPATCHER = "dispatcher"
_PARTS = {"migrated": "database", "database": "database", "ticking": "ticker", "deciding": "decisions"}
# Told by what the namespace itself says about its schedules.
_LEFT_OUT = frozenset({"outcomes"})


@dataclass(frozen=True, slots=True)
class Part:
    """`ok` None = this caller may not know."""

    name: str
    ok: bool | None
    detail: str
    remedy: str | None = None

    @property
    def word(self) -> str:
        return "not known" if self.ok is None else "ok" if self.ok else "failing"


@app.command("health")
@with_remote
def health_command(remote: Remote, all_namespaces: AllNamespaces = False) -> None:
    """Whether the service does its work: database, ticker, decisions, worker; and how many schedules are not well.

    Exit code 0 means that all of it does, 1 that some of it does not, 3 that nobody answers. Schedules that fail are
    counted and do not change it: `horarium schedule health` says which they are, and its exit code says that there are
    some.

    Example: horarium health
    """
    found = remote.client.readiness()
    parts, unwell = [*_checks(found), _worker(remote)], _unwell(remote, listed_namespace(all_namespaces))
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


def _good(parts: list[Part]) -> bool:
    return all(each.ok is not False for each in parts)


def _text(part: Part) -> str:
    return f"{part.name}: {part.word} ({part.detail}{f'; {part.remedy}' if part.remedy else ''})"


def _checks(found: Health) -> list[Part]:
    return [
        Part(_PARTS.get(check.name, check.name), check.passed, check.detail or "", check.remedy)
        for check in found.checks
        if check.name not in _LEFT_OUT
    ]


def _unwell(remote: Remote, namespace: str | None) -> dict[str, int] | None:
    """Count the schedules that are not well, by status; None = this caller may not know."""
    from horarium.client.errors import ClientError

    try:
        page = remote.client.list_schedule_health(unwell=True, namespace=namespace)
    except ClientError:
        if namespace is not None:  # it was asked for by name
            raise
        return None
    return dict(sorted(Counter(str(each.status) for each in page).items()))


def _counted(unwell: dict[str, int] | None) -> str:
    if unwell is None:
        return "not known (a token of this namespace may ask)"
    if not unwell:
        return "ok (none fails, is late, or waits for somebody)"
    return f"{', '.join(f'{count} {word}' for word, count in unwell.items())} (horarium schedule health says which)"


def _worker(remote: Remote) -> Part:
    from horarium.client.errors import Forbidden, Unauthorized

    try:
        found = _loops(remote).get(_DISPATCHER)
    except (Forbidden, Unauthorized):
        return Part("worker", None, "only an admin's token may ask")
    if found is None:
        return Part("worker", False, "no worker hands out runs", "start horarium up or horarium worker")
    detail = f"a worker completed a step {found.get('seconds_ago', 0):.1f} s ago"
    ok = bool(found.get("healthy"))
    return Part("worker", ok, detail, None if ok else "look at its log")


def _loops(remote: Remote) -> dict[str, Any]:
    from horarium.client.call import Call

    # One whose ticker is stuck is an answer too, not an error.
    answer = remote.send(Call("GET", "/admin/liveness", dict[str, Any], also=(503,)))
    loops = answer.get("subsystems")
    return loops if isinstance(loops, dict) else {}
