"""The description of a Celery app, from a child process that loads the app, or from a file.

An app may print, hang or exit, so it is loaded in a separate process with a timeout and answers in a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from horarium.cli.present import printable
from horarium.cli.reading import read_object, refuse
from horarium.instant import DAY, SECOND, Instant

COMPARED_DAYS = 366
_MAX_BYTES = 256 * 1024 * 1024
_MAX_PRINTED = 2_000
# Per entry: a year of hours, a week of minutes. Denser entries are then compared around DST changes only.
_MAX_STEPS = 10_000


def from_file(file: str) -> dict[str, Any]:
    return read_object("--from", file)


def from_app(app: str, *, django: bool, python: str | None, now: Instant, timeout: int) -> dict[str, Any]:
    """Load the app from the working directory, as `celery beat` does."""
    with tempfile.TemporaryDirectory(prefix="horarium-") as folder:
        answer, printed = Path(folder) / "description.json", Path(folder) / "printed"
        until = now + COMPARED_DAYS * DAY
        wanted = {
            "app": app,
            "django": django,
            "now": now // SECOND,
            "until": until // SECOND,
            "steps": _MAX_STEPS,
            "output": str(answer),
        }
        code = _run([python or sys.executable, "-c", _program(), json.dumps(wanted)], printed, timeout)
        if not answer.is_file():
            refuse(f"{app}: the process that loads it exited with code {code} and no answer{_said(printed)}")
        if answer.stat().st_size > _MAX_BYTES:
            refuse(f"{app}: the description has more than {_MAX_BYTES} bytes")
        document = read_object("description", str(answer))
        if "error" in document:
            refuse(f"{app}: loading failed: {str(document['error'])[:_MAX_PRINTED]}{_said(printed)}")
        return document


def _program() -> str:
    return resources.files("horarium.cli").joinpath("celery_child.py").read_text("utf-8")


def _run(command: list[str], printed: Path, timeout: int) -> int:
    """Run a command in a new session, so that its child processes end with it."""
    with printed.open("wb") as file:
        try:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )
        except OSError as wrong:
            refuse(f"--python: cannot start {command[0]!r}: {wrong.strerror}")
        try:
            return child.wait(timeout)
        except subprocess.TimeoutExpired:
            refuse(f"loading the app took more than {timeout} seconds; increase --load-timeout")
        finally:
            _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _said(printed: Path) -> str:
    """Return the last line of the output, for the error message."""
    with printed.open("rb") as file:
        file.seek(max(0, printed.stat().st_size - _MAX_PRINTED))
        text = file.read().decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"; last output: {printable(lines[-1])}" if lines else ""
