"""The tree of errors. Each class has the reason code that every interface shows.

HorariumError
├── InvalidSpec            invalid_spec           a cron, interval, one-off or zone that we refuse
├── NotAnInstant           unreadable_row         a stored time outside of the years 1 to 9999
├── ConditionError         invalid_condition      a filter that is not in the condition language
├── InvalidDefinition      validation_failed      a document with one message per bad field
│   └── KindNotAvailable   kind_not_available     an action of a kind that no launcher declares
├── InvalidCalendar        invalid_calendar       dates, kind or zone of a calendar
├── InvalidWorkflow        invalid_workflow       a graph with unknown or duplicate nodes
│   └── CycleDetected      cycle_detected         a graph that never ends
├── InvalidTransition      invalid_transition     a run cannot go from that state to this one
└── BackfillTooLarge       backfill_too_large     more occurrences than one request may ask for
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar


class HorariumError(Exception):
    """The root; `message` is one sentence for a person, `reason` one word for a program."""

    reason: ClassVar[str] = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidSpec(HorariumError, ValueError):
    """`field` names the part that is wrong: `hour`, `timezone`, `every` …; None = the whole."""

    reason = "invalid_spec"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class NotAnInstant(HorariumError, OverflowError):
    """A stored time that no calendar has: the row was damaged."""

    reason = "unreadable_row"


class ConditionError(HorariumError, ValueError):
    """The filter is malformed; a condition that raises this fails closed."""

    reason = "invalid_condition"


class InvalidDefinition(HorariumError, ValueError):
    """`errors` maps the path of each bad field (`spec.cron_expressions.0`) to what is wrong with it.

    `place` is where it was written, such as `jobs.py:12`.
    """

    reason = "validation_failed"

    def __init__(self, errors: Mapping[str, Sequence[str]], *, place: str = "") -> None:
        self.errors: dict[str, list[str]] = {path: list(texts) for path, texts in errors.items()}
        said = "; ".join(f"{path}: {text}" for path, texts in self.errors.items() for text in texts)
        super().__init__(f"{place}: {said}" if place else said)


class KindNotAvailable(InvalidDefinition):
    """Some package may bring the kind; none that is installed here does."""

    reason = "kind_not_available"


class InvalidCalendar(HorariumError, ValueError):
    reason = "invalid_calendar"


class InvalidWorkflow(HorariumError, ValueError):
    """`errors` maps the path of each bad field (`nodes.0.action.url`) to what is wrong; a sentence is of the whole."""

    reason = "invalid_workflow"

    def __init__(self, wrong: str | Mapping[str, Sequence[str]]) -> None:
        given = {"nodes": [wrong]} if isinstance(wrong, str) else wrong
        self.errors: dict[str, list[str]] = {path: list(texts) for path, texts in given.items()}
        told = "; ".join(f"{path}: {text}" for path, texts in self.errors.items() for text in texts)
        super().__init__(wrong if isinstance(wrong, str) else told)


class CycleDetected(InvalidWorkflow):
    """`nodes` are the members of one cycle, in order; `path` is where the document has it."""

    reason = "cycle_detected"

    def __init__(self, nodes: Sequence[str], *, path: str = "edges") -> None:
        # Of a thousand nodes the first ones are enough for a person; a program has them all.
        shown = [*nodes[:20], *(["…"] if len(nodes) > 20 else []), *nodes[:1]]
        super().__init__("the workflow contains a cycle: " + " → ".join(shown))
        self.errors = {path: [self.message]}
        self.nodes = tuple(nodes)


class InvalidTransition(HorariumError):
    reason = "invalid_transition"


class BackfillTooLarge(HorariumError, ValueError):
    """`count` is how many occurrences the window holds; None = more than `limit`, and not worth counting."""

    reason = "backfill_too_large"

    def __init__(self, count: int | None, limit: int) -> None:
        held = f"more than {limit}" if count is None else str(count)
        super().__init__(f"the window has {held} occurrences; a request may have at most {limit}")
        self.count = count
        self.limit = limit
