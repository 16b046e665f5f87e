"""Each log line of the service has a snake_case name, so that programs can match it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from surfaces import log_calls

import horarium

SOURCE = Path(horarium.__file__).parent
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def test_names_of_events_are_snake_case() -> None:
    names = list(_event_names())
    assert len(names) > 40
    assert [each for each in names if not _NAME.fullmatch(each[1])] == []


def _event_names() -> Iterator[tuple[str, str]]:
    for call in log_calls(SOURCE):
        # Code that runs in the user's process logs sentences with the standard library.
        if call.path.parent.name in ("celery", "client") or "logging.getLogger(" in call.path.read_text("utf-8"):
            continue
        yield f"{call.path.relative_to(SOURCE)}:{call.line}", call.name
