"""One recorder behind every kind of launcher: whatever a schedule does, a test sees it and says what comes of it."""

from __future__ import annotations

from collections.abc import Iterable

from horarium.core.document.kinds import PYTHON, SHIPPED
from horarium.core.lifecycle.outcome import Outcome
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.python import PythonLauncher
from horarium.launchers.recording import RecordingLauncher
from horarium.launchers.registry import Registry
from horarium.launchers.tasks import TaskRegistry
from horarium.platform.clock import Clock
from horarium.serve.launchers import kind_audiences
from horarium.settings import Settings


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
