"""What a person sees who asks a server, word for word.

Each story is a file; `HORARIUM_UPDATE_TRANSCRIPTS=1 pytest tests/cli` writes them anew. Ids are drawn at
random: in a story the first one is called `ID…1`. Spaces at the ends of lines are not compared.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from cli.served import Ids, Server
from cli.stories import FILES, STORIES, Step

FOLDER = Path(__file__).parent / "transcripts" / "stories"
_KEY = re.compile(r"\b[0-9a-f]{64}\b")  # of a run: it hangs on the id of its schedule
_SECRET = re.compile(r"hor_[A-Za-z0-9_-]{20,}")


@pytest.mark.parametrize("name", STORIES)
def test_the_terminal_shows_what_the_story_says(name: str, server: Server) -> None:
    for path, text in FILES.items():
        Path(path).write_text(text, "utf-8")
    ids = Ids()
    seen = "\n".join(told(step, server, ids) for step in STORIES[name])
    file = FOLDER / f"{name}.txt"
    if os.environ.get("HORARIUM_UPDATE_TRANSCRIPTS"):
        file.write_text(seen, "utf-8")
    assert seen == file.read_text("utf-8")


def told(step: Step, server: Server, ids: Ids) -> str:
    if not isinstance(step, str):
        what, happens = step
        happens(server.service)
        return f"# {what}\n"
    answer = server.ask(*(ids.resolve(word) for word in shlex.split(step)))
    shown = f"$ horarium {step.strip()}\n{answer.out}"
    shown += f"--- stderr\n{answer.err}" if answer.err else ""
    shown += f"--- exit code {answer.code}\n"
    plain = _KEY.sub("KEY", _SECRET.sub("hor_…", ids.replace(shown)))
    return "\n".join(line.rstrip() for line in plain.split("\n"))


def test_every_file_has_a_story() -> None:
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(STORIES)
