"""Reports of a task: a signal of Celery and a run become a report.

| signal                | state       | details                                                            |
|-----------------------|-------------|--------------------------------------------------------------------|
| `task_prerun`         | running     |                                                                    |
| `task_retry`          | running     | Celery itself tries it again                                       |
| `task_success`        | succeeded   | the result                                                         |
| `task_failure`        | failed      | class and text of the exception; of a time limit it is `timed_out` |
| `task_internal_error` | failed      | likewise                                                           |
| `task_revoked`        | cancelled   | of a task that has expired it is `timed_out`                       |
| `task_unknown`        | failed      | `NotRegistered`                                                    |
| `task_rejected`       | failed      | `Rejected`: the message could not be read                          |

Nothing here raises, whatever a task returns or raises: a result that is no JSON becomes text, and text is cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from reprlib import Repr
from typing import Any
from uuid import UUID

from horarium.core.document.json_values import checked_object
from horarium.core.policy.approval import NOT_REGISTERED, TIME_LIMITS
from horarium.core.policy.queue import MAX_TEXT_LENGTH, PolicyError
from horarium.platform.job import RunHeader

MAX_RESULT_BYTES = 262_144
"""Maximum bytes of a result as JSON; only the beginning of a larger result is reported."""
MAX_ERROR = 4_000
"""Characters of an error, as many as the service keeps."""
_MAX_SHOWN = 10_000


@dataclass(frozen=True, slots=True)
class TaskReport:
    """A report on one run; `final`: it ends the attempt."""

    header: RunHeader
    said: dict[str, Any]
    final: bool

    def document(self) -> dict[str, Any]:
        """As the service takes it; run and token stand side by side, where it looks for them."""
        return {"run_id": self.header.run_id, "report_token": self.header.report_token, **self.said}


def started(header: RunHeader) -> TaskReport:
    return TaskReport(header, {"state": "running"}, final=False)


def succeeded(header: RunHeader, result: object) -> TaskReport:
    return TaskReport(header, {"state": "succeeded", "result": result_of(result)}, final=True)


def failed(header: RunHeader, exception: object) -> TaskReport:
    name = class_name(exception)
    if TIME_LIMITS & {name, *(each.__name__ for each in type(exception).__mro__)}:
        return TaskReport(header, {"state": "timed_out", "error": error_of(exception)}, final=True)
    return TaskReport(header, {"state": "failed", "error": error_of(exception), "error_class": name}, final=True)


def revoked(header: RunHeader, *, expired: bool, terminated: bool) -> TaskReport:
    if expired:
        return TaskReport(header, {"state": "timed_out", "error": "the task expired before it began"}, final=True)
    error = "the task was terminated" if terminated else "the task was revoked"
    return TaskReport(header, {"state": "cancelled", "error": error}, final=True)


def unknown(header: RunHeader, name: object) -> TaskReport:
    error = cut(f"{NOT_REGISTERED}: this worker has no task {name!r}", MAX_ERROR)
    return TaskReport(header, {"state": "failed", "error": error, "error_class": NOT_REGISTERED}, final=True)


def rejected(header: RunHeader, exception: object) -> TaskReport:
    error = "the worker could not read the message"
    if exception is not None:
        error = cut(f"{error}: {error_of(exception)}", MAX_ERROR)
    return TaskReport(header, {"state": "failed", "error": error, "error_class": "Rejected"}, final=True)


# ── what tasks return and raise ──────────────────────────────────────────────────────────────────────


def result_of(value: object) -> Any:
    """The value where it is JSON within the bounds of the service; dates and the like, and what is no JSON, as text."""
    try:
        return _bounded(value, checked_object("result", {"value": value})["value"])
    except (PolicyError, ValueError, TypeError, RecursionError):
        pass
    try:
        plain = json.loads(json.dumps(value, default=_plain, allow_nan=False))
        return _bounded(value, checked_object("result", {"value": plain})["value"])
    except Exception:  # a task's own class may raise anything while it is looked at
        return _shown(value)


def _bounded(value: object, plain: Any) -> Any:
    text = json.dumps(plain, allow_nan=False, separators=(",", ":"))
    return plain if len(text) <= MAX_RESULT_BYTES else f"{text[:_MAX_SHOWN]}…"


def _plain(value: object) -> str:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case UUID() | Decimal():
            return str(value)
        case _:
            return _shown(value)


class _Shown(Repr):
    """A `repr` that truncates large values: a task may return anything, and must not be delayed."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 10
        self.maxtuple = self.maxlist = self.maxset = self.maxfrozenset = self.maxdeque = self.maxdict = 1_000
        self.maxstring = self.maxlong = self.maxother = _MAX_SHOWN

    def repr_bytes(self, value: bytes, _level: int) -> str:
        return repr(value[:_MAX_SHOWN])

    def repr_instance(self, value: Any, level: int) -> str:
        return cut(_guarded(lambda: repr(value), value), self.maxother)


def _shown(value: object) -> str:
    return cut(_guarded(lambda: _Shown().repr(value), value), _MAX_SHOWN)


def class_name(exception: object) -> str:
    """Celery wraps what cannot be pickled, and tells the name of what it was."""
    wrapped = getattr(exception, "exc_cls_name", None)
    name = wrapped if isinstance(wrapped, str) else type(exception).__name__
    printable = "".join(each for each in name if each.isprintable()).strip()
    return cut(printable or "Exception", MAX_TEXT_LENGTH)


def error_of(exception: object) -> str:
    """The class and the text, and nothing of where it was raised: a traceback shows more than should travel."""
    text = _guarded(lambda: str(exception), exception)
    name = class_name(exception)
    return cut(f"{name}: {text}" if text else name, MAX_ERROR)


def _guarded(show: Callable[[], str], value: object) -> str:
    try:
        return show()
    except Exception:  # a class of the task's own, which may raise anything
        return f"<{type(value).__name__} without a printable value>"


def cut(text: str, most: int) -> str:
    """Truncate a text and replace what cannot be stored: half a surrogate pair and U+0000."""
    short = text if len(text) <= most else f"{text[: most - 1]}…"
    return short.encode("utf-8", "replace").decode().replace("\x00", "�")
