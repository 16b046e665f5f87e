"""The header of a Celery message that describes its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

HEADER = "horarium"
"""The name of the header; its value is an object with the fields of `RunHeader`."""


@dataclass(frozen=True, slots=True)
class RunHeader:
    """The fields of the header; `nominal` is RFC 3339. Without `report_url` the worker cannot report."""

    run_id: str
    namespace: str
    attempt: int
    nominal: str
    schedule_id: str | None = None
    report_url: str | None = None
    report_token: str | None = None

    def to_header(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


_NAMES = frozenset(each.name for each in fields(RunHeader))
_TEXTS = _NAMES - {"attempt"}


def read_header(headers: object) -> RunHeader | None:
    """Read the header of a message; None for messages from other senders and invalid headers."""
    given = headers.get(HEADER) if isinstance(headers, Mapping) else None
    if not isinstance(given, Mapping):
        return None
    known = {name: given[name] for name in _NAMES if given.get(name) is not None}
    if not isinstance(known.get("attempt"), int) or not all(isinstance(known.get(name, ""), str) for name in _TEXTS):
        return None
    try:
        return RunHeader(**known)
    except TypeError:  # a required field is missing
        return None
