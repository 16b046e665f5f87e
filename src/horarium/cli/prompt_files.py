"""Read the `prompt_file` of agent schedules in a bundle into `prompt`.

Paths are relative to the bundle and must be inside the given directory, or the directory of the bundle file: no other
file of the machine is sent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from horarium.cli.reading import STDIN, refuse
from horarium.features.bundles.organisation import CHILDREN, PROMPT_FILE, SCHEDULES

MAX_BYTES = 1_000_000
_DEEPEST = 64


def with_prompts(agents: list[dict[str, Any]], file: str, root: str) -> list[dict[str, Any]]:
    """Return agents with their prompts; `root` is the given directory or file."""
    return [_agent(agent, _Folder(file, root), _DEEPEST) for agent in agents]


class _Folder:
    """The directory of a bundle file, and the directory that contains its prompts."""

    def __init__(self, file: str, root: str) -> None:
        self._file = file
        self._is_stdin = file == STDIN
        self._here = Path(file).parent
        self._border = Path(root) if Path(root).is_dir() else self._here

    def text(self, name: object) -> str:
        if self._is_stdin:
            refuse("--file: prompt_file is not supported in a bundle on stdin")
        if not isinstance(name, str) or not name:
            refuse(f"--file: prompt_file of {self._file!r} must be a file name")
        try:
            path, border = (self._here / name).resolve(), self._border.resolve()
            if Path(name).is_absolute() or not path.is_relative_to(border):
                refuse(
                    f"--file: prompt_file {name[:128]!r} of {self._file!r} is outside of the directory of the bundle"
                )
            if not path.is_file():
                refuse(f"--file: prompt_file {name[:128]!r} of {self._file!r} is not a file")
            with path.open("rb") as stream:
                raw = stream.read(MAX_BYTES + 1)
        except (OSError, ValueError, RuntimeError) as wrong:  # a NUL in the name; circular links
            refuse(f"--file: cannot read prompt_file {name[:128]!r} of {self._file!r}: {wrong}")
        if len(raw) > MAX_BYTES:
            refuse(f"--file: prompt_file {name[:128]!r} of {self._file!r} is larger than {MAX_BYTES} bytes")
        try:
            return raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            refuse(f"--file: prompt_file {name[:128]!r} of {self._file!r} is not UTF-8")


def _agent(agent: dict[str, Any], folder: _Folder, depth: int) -> dict[str, Any]:
    """Return an agent with its prompts; the server reports values of a wrong type."""
    changed = dict(agent)
    if isinstance(agent.get(SCHEDULES), list):
        changed[SCHEDULES] = [_schedule(each, folder) for each in agent[SCHEDULES]]
    if isinstance(agent.get(CHILDREN), list) and depth:
        changed[CHILDREN] = [
            _agent(each, folder, depth - 1) if isinstance(each, dict) else each for each in agent[CHILDREN]
        ]
    return changed


def _schedule(schedule: Any, folder: _Folder) -> Any:
    """Return a schedule with its prompt; a prompt in the bundle takes precedence."""
    if not isinstance(schedule, dict) or schedule.get(PROMPT_FILE) is None:
        return schedule
    left = {name: value for name, value in schedule.items() if name != PROMPT_FILE}
    return left if schedule.get("prompt") else {**left, "prompt": folder.text(schedule[PROMPT_FILE])}
