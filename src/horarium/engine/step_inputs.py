"""Inputs of the steps that one transaction creates: computed once where they are equal, and bounded together.

A step without a template is given a copy of the run's inputs and of the results before it. A thousand steps behind a
megabyte would be a gigabyte in one transaction, and again in the one that ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from horarium.engine.step_rows import NO_TEXTS, Parent
from horarium.ids import id_text
from horarium.instant import to_rfc3339
from horarium.schedule.data_flow import Unusable, render_step, step_input
from horarium.schedule.definition import Action
from horarium.schedule.json_limits import Json
from horarium.schedule.problems import Problems
from horarium.schedule.rendering import RunFacts, ScheduleName
from horarium.schedule.secret import KEY
from horarium.schedule.storable import MAX_BYTES, check_storable
from horarium.schedule.workflow import Node
from horarium.store.database.json_text import event_text, from_text, to_text

MAX_OPEN_BYTES: Final = 32 * MAX_BYTES
"""Maximum bytes of inputs of all open steps of a root run, at all depths."""
_FULL = f"input: the inputs of the run's open steps exceed {MAX_OPEN_BYTES} bytes in total"
_TOO_LARGE = "input: the results of earlier nodes are too large in total"
_WAY_OUT = "select the values that each node needs in its `input`"


class TooMuchAtOnce(Exception):
    """The inputs of the steps of several workflow runs are too large for one transaction."""


class StepInputs:
    """The inputs of the steps that one transaction creates."""

    def __init__(self, open_bytes: Callable[[bytes], int], *, several: bool) -> None:
        """`open_bytes` reads the size of the inputs of a root's open steps. `several`: the steps of several runs."""
        self._open_bytes = open_bytes
        self._several = several
        self._known: dict[tuple[bytes, frozenset[str]], str] = {}
        self._new: dict[bytes, int] = {}
        self._before: dict[bytes, int] = {}
        self._full: set[bytes] = set()

    def of(
        self, parent: Parent, node: Node, action: Action, results: Mapping[str, str | None] | None
    ) -> tuple[str, Mapping[str, Json]]:
        """Return the input of a step, and the texts that its template is rendered to.

        `results` are the texts of those that it may read, None where they are too large together. Raises NothingFound,
        TemplateError, Unusable, and TooMuchAtOnce.
        """
        root = parent.run.work.root_run_id or parent.run_id
        if root in self._full:
            raise Unusable(f"{_FULL}; {_WAY_OUT}")
        if results is None:
            raise Unusable(f"{_TOO_LARGE}; {_WAY_OUT}")
        key = parent.run_id, frozenset(results)
        is_alike = not (node.has_input or action.template)
        text, texts = self._known.get(key) if is_alike else None, NO_TEXTS
        if text is None:
            text, texts = _inputs(parent, node, action, results)
        if is_alike:
            self._known[key] = text
        self._count(root, len(text) + sum(len(to_text(each)) for each in texts.values()))
        return text, texts

    def _count(self, root: bytes, size: int) -> None:
        new = self._new[root] = self._new.get(root, 0) + size
        if self._several and sum(self._new.values()) > MAX_OPEN_BYTES:
            raise TooMuchAtOnce
        if new <= MAX_BYTES:  # the usual case needs no query
            return
        if root not in self._before:
            self._before[root] = self._open_bytes(root)
        if self._before[root] + new > MAX_OPEN_BYTES:
            self._full.add(root)
            raise Unusable(f"{_FULL}; {_WAY_OUT}")


def _inputs(
    parent: Parent, node: Node, action: Action, results: Mapping[str, str | None]
) -> tuple[str, Mapping[str, Json]]:
    # Neither what a target answers nor what a caller sends was written by the author of the workflow: no secret is
    # opened for it.
    if _names_secret(parent.inputs):
        raise Unusable("input: the inputs of the workflow refer to a secret; only its nodes may")
    known: dict[str, Any] = {}
    for name, text in results.items():
        known[name] = None if text is None else from_text(text)
        if text is not None and KEY in text and _names_secret(known[name]):
            raise Unusable(f"input: the result of {name!r} refers to a secret; results may not")
    context = {"inputs": parent.inputs, "results": known, "run": _told_of(parent)}
    texts: Mapping[str, Json] = NO_TEXTS
    if action.template:
        given, texts = render_step(node, action, context, _facts_of(parent))
    else:
        given = step_input(node, context)
    problems = Problems()
    check_storable({"inputs": given}, problems)
    problems.raise_any()
    return event_text(given), texts


def _facts_of(parent: Parent) -> RunFacts:
    """The facts of the workflow's run, as those that pointers lead to."""
    work, definition = parent.run.work, parent.definition
    named = None if work.schedule_uid is None else ScheduleName(definition.schedule_id, definition.name)
    spec = definition.spec.compile(definition.schedule_id)
    run_id = id_text(work.run_id)
    return RunFacts(
        work.namespace, work.origin, work.nominal, work.due, spec, named, run_id=run_id, created_at=work.created_at
    )


def _names_secret(value: Json) -> bool:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if KEY in item:
                return True
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
    return False


def _told_of(parent: Parent) -> dict[str, Json]:
    work = parent.run.work
    return {
        "run_id": id_text(work.run_id),
        "schedule_id": None if work.schedule_uid is None else parent.definition.schedule_id,
        "nominal": to_rfc3339(work.nominal),
        "due": to_rfc3339(work.due),
        "attempt": work.attempt,
        "workflow_id": parent.workflow.workflow.workflow_id,
        "version": parent.workflow.workflow.version,
    }
