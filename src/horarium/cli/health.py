"""The command `horarium health`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from horarium.cli.pages import AllNamespaces, listed_namespace
from horarium.cli.present import show_document
from horarium.cli.remote import ExitCode, Remote, with_remote

if TYPE_CHECKING:
    from horarium.features.tenants.model import Health

app = typer.Typer(add_completion=False)

# The loop of a worker that dispatches runs.
_DISPATCHER = "dispatcher"
_PARTS = {"migrated": "database", "database": "database", "ticking": "ticker", "deciding": "decisions"}
# Covered by the health of the schedules.
_LEFT_OUT = frozenset({"outcomes"})


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the service; `ok` is None if the caller may not read it."""

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
    """Show the health of the service: database, ticker, decisions and worker; and the number of unhealthy schedules.

    Exit code 0: the service is healthy; 1: a part is failing; 3: server unreachable. Unhealthy schedules do not affect
    the exit code; `horarium schedule health` lists them.

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
    """Count the unhealthy schedules by status; None if the caller may not read them."""
    from horarium.client.errors import ClientError

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


def _worker(remote: Remote) -> Part:
    from horarium.client.errors import Forbidden, Unauthorized

    try:
        found = _loops(remote).get(_DISPATCHER)
    except (Forbidden, Unauthorized):
        return Part("worker", None, "requires an admin token")
    if found is None:
        return Part("worker", False, "no worker is active", "start `horarium up` or `horarium worker`")
    detail = f"last activity {found.get('seconds_ago', 0):.1f} s ago"
    ok = bool(found.get("healthy"))
    return Part("worker", ok, detail, None if ok else "check the log of the worker")


def _loops(remote: Remote) -> dict[str, Any]:
    from horarium.client.call import Call

    # 503 is an answer: the ticker is stuck.
    answer = remote.send(Call("GET", "/admin/liveness", dict[str, Any], also=(503,)))
    loops = answer.get("subsystems")
    return loops if isinstance(loops, dict) else {}
