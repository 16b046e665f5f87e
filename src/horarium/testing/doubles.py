"""Test doubles: a clock that the test moves, and one recorder behind every kind of launcher.

A test sees each launch of the recorder and decides its outcome.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from horarium.core.document.reader import PYTHON, SHIPPED
from horarium.core.lifecycle.outcome import Outcome
from horarium.instant import SECOND, Instant, from_datetime, from_rfc3339, to_rfc3339
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.python import PythonLauncher
from horarium.launchers.recording import RecordingLauncher
from horarium.launchers.registry import Registry
from horarium.launchers.tasks import TaskRegistry
from horarium.platform.clock import Clock
from horarium.platform.settings import Settings
from horarium.serve.launchers import kind_audiences

# ── clock ─────────────────────────────────────────────────────────────────────────────────────────────


When = Instant | str | datetime
"""Microseconds since the epoch, an RFC 3339 text, or an aware datetime."""

DEFAULT_START = "2026-01-01T00:00:00Z"


def instant_of(moment: When, *, field: str = "time") -> Instant:
    match moment:
        case str():
            return from_rfc3339(moment, field=field)
        case datetime():
            return from_datetime(moment, field=field)
        case _:
            return moment


class FakeClock:
    """`now` may be set anywhere, as the clock of a machine may be; `monotonic` only ever counts what was advanced."""

    def __init__(self, start: When = DEFAULT_START) -> None:
        self._now = instant_of(start, field="start")
        self._elapsed = 0

    def now(self) -> Instant:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed / SECOND

    def advance(self, seconds: float) -> Instant:
        if seconds < 0:
            raise ValueError(f"seconds must not be negative: {seconds}; use `set` to move the clock back")
        moved = round(seconds * SECOND)
        self._now += moved
        self._elapsed += moved
        return self._now

    def set(self, moment: When) -> Instant:
        """Forward this is time that passes; backward it is a step of the machine's clock."""
        wanted = instant_of(moment)
        self._elapsed += max(0, wanted - self._now)
        self._now = wanted
        return wanted

    def __repr__(self) -> str:
        return f"FakeClock({to_rfc3339(self._now)!r})"


# ── recorder ──────────────────────────────────────────────────────────────────────────────────────────


class _Mirror(Launcher):
    """Stands where the launcher of a kind would stand."""

    honours_key = True
    concurrency = None
    can_poll = False

    def __init__(self, kind: str, recorder: RecordingLauncher) -> None:
        self.kind = kind
        self._recorder = recorder

    async def launch(self, request: LaunchRequest) -> Outcome:
        return await self._recorder.launch(request)

    async def cancel(self, request: LaunchRequest, reference: str | None) -> None:
        await self._recorder.cancel(request, reference)


def recording_registry(recorder: RecordingLauncher, clock: Clock, tasks: TaskRegistry, settings: Settings) -> Registry:
    """Tasks of an application are really called; everything else goes to the recorder."""
    usual = settings.audience(None)
    python: Launcher = PythonLauncher(tasks, clock, usual=usual) if len(tasks) else _Mirror(PYTHON.name, recorder)
    kinds = [kind for kind in SHIPPED if kind != PYTHON.name]
    mirrors: Iterable[Launcher] = (_Mirror(kind, recorder) for kind in kinds)
    return Registry(
        [python, *mirrors],
        knows_task=lambda name, namespace: tasks.find(name, namespace, usual) is not None,
        audiences=kind_audiences(settings),
    )
