"""How a bundle's prompts are read from files beside it: `prompt_file` of an agent's schedule becomes `prompt`.

A file is named from where the bundle stands, and lies in the folder that was given, or in that of the bundle's file:
what is reviewed with the bundle is what is sent, and nothing else of the machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from horarium.cli.reading import STDIN, refuse
from horarium.schedule.org_bundle import CHILDREN, PROMPT_FILE, SCHEDULES

MAX_BYTES = 1_000_000
_DEEPEST = 64


def with_prompts(agents: list[dict[str, Any]], file: str, root: str) -> list[dict[str, Any]]:
    """`root` is the folder that was given, or the file itself."""
    return [_agent(agent, _Folder(file, root), _DEEPEST) for agent in agents]


class _Folder:
    """Where the bundle's file stands, and what its prompts may not leave."""

    def __init__(self, file: str, root: str) -> None:
        self._file = file
        self._is_stdin = file == STDIN
        self._here = Path(file).parent
        self._border = Path(root) if Path(root).is_dir() else self._here

    def text(self, name: object) -> str:
        if self._is_stdin:
            refuse("--file: a bundle on stdin stands nowhere, so that it has no prompt_file")
        if not isinstance(name, str) or not name:
            refuse(f"--file: prompt_file of {self._file!r} must be the name of a file")
        try:
            path, border = (self._here / name).resolve(), self._border.resolve()
            if Path(name).is_absolute() or not path.is_relative_to(border):
                refuse(f"--file: prompt_file {name[:128]!r} of {self._file!r} lies outside of the bundle's folder")
            if not path.is_file():
                refuse(f"--file: prompt_file {name[:128]!r} of {self._file!r} is not a file")
            with path.open("rb") as stream:
                raw = stream.read(MAX_BYTES + 1)
        except (OSError, ValueError, RuntimeError) as wrong:  # a NUL in the name; links that go in a circle
            refuse(f"--file: cannot read prompt_file {name[:128]!r} of {self._file!r}: {wrong}")
        if len(raw) > MAX_BYTES:
            refuse(f"--file: prompt_file {name[:128]!r} of {self._file!r} is larger than {MAX_BYTES} bytes")
        try:
            return raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            refuse(f"--file: prompt_file {name[:128]!r} of {self._file!r} is not UTF-8")


def _agent(agent: dict[str, Any], folder: _Folder, depth: int) -> dict[str, Any]:
    """What is no list of objects stays as it is: whoever reads the bundle says what is wrong with it."""
    changed = dict(agent)
    if isinstance(agent.get(SCHEDULES), list):
        changed[SCHEDULES] = [_schedule(each, folder) for each in agent[SCHEDULES]]
    if isinstance(agent.get(CHILDREN), list) and depth:
        changed[CHILDREN] = [
            _agent(each, folder, depth - 1) if isinstance(each, dict) else each for each in agent[CHILDREN]
        ]
    return changed


def _schedule(schedule: Any, folder: _Folder) -> Any:
    """A prompt that stands in the bundle itself wins over the file."""
    if not isinstance(schedule, dict) or schedule.get(PROMPT_FILE) is None:
        return schedule
    left = {name: value for name, value in schedule.items() if name != PROMPT_FILE}
    return left if schedule.get("prompt") else {**left, "prompt": folder.text(schedule[PROMPT_FILE])}
