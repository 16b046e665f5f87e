"""Who can do an action: nobody is warned where some process can, and everybody where none is known to."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from launchers.far_ends import FixedClock, tasks

from horarium.audience import EVERYBODY, USUAL, Audience
from horarium.core.document.definition import Action
from horarium.core.document.reader import SHIPPED
from horarium.launchers.command import CommandLauncher, CommandSpec
from horarium.launchers.pull import PullLauncher
from horarium.launchers.python import PythonLauncher
from horarium.launchers.registry import MAX_NAMES, Registry, Served, read_served, unserved

PYTHON = Served({"python": EVERYBODY, "pull": EVERYBODY}, {"python": {"report": USUAL}})
SHELL = Served({"command": EVERYBODY}, {"command": {"backup": USUAL}})
SILENT = Served({"python": EVERYBODY})
PULL = Served({"pull": EVERYBODY})

CASES: dict[str, tuple[Action, list[Served], str | None]] = {
    "a known task": (Action("python", {"task": "report"}), [PYTHON], None),
    "a known task elsewhere": (Action("python", {"task": "report"}), [SHELL, PYTHON], None),
    "an unknown task": (Action("python", {"task": "x"}), [PYTHON], "action.task: no running process has 'x'"),
    "a process that cannot say": (Action("python", {"task": "x"}), [PYTHON, SILENT], None),
    "a known command": (Action("command", {"command": "backup"}), [SHELL], None),
    "an unknown command": (Action("command", {"command": "x"}), [SHELL], "action.command: no running process has 'x'"),
    "a kind that nobody serves": (
        Action("prompt", {"prompt": "p"}),
        [PYTHON],
        "action.kind: no running process executes p",
    ),
    "no process at all": (Action("http", {"url": "u"}), [], "action.kind: no running process executes http"),
    "a kind without names": (Action("pull", {"workflow_type": "x"}, queue="q"), [PULL], None),
    "a kind that is gone": (Action("echo", {"text": "x"}), [Served({"echo": USUAL})], None),
    "work that is a task": (Action("workflow", {"workflow_type": "report"}), [PYTHON], None),
    "work that nobody knows": (
        Action("workflow", {"workflow_type": "x"}, queue="q"),
        [PYTHON],
        "action.workflow_type: no task or stored workflow is named 'x'; runs wait in the queue 'q'",
    ),
    "a workflow that is not stored": (
        Action("workflow", {"workflow_id": "x"}),
        [PYTHON],
        "action.workflow_id: no task",
    ),
    "work and no queue": (Action("workflow", {"workflow_class": "x"}), [SHELL], "action.kind: no running process"),
}


@pytest.mark.parametrize(("action", "processes", "said"), CASES.values(), ids=CASES)
def test_the_author_hears_what_nobody_can_do(action: Action, processes: list[Served], said: str | None) -> None:
    found = unserved(action, SHIPPED, processes, "default", stored=False)
    assert len(found) == (said is not None)
    assert all(text.startswith(said or "") for text in found)


NAMED = {
    "task": (lambda name: Action("python", {"task": name}), "report"),
    "command": (lambda name: Action("command", {"command": name}), "backup"),
    "work": (lambda name: Action("workflow", {"workflow_type": name}), "report"),
}


@pytest.mark.parametrize(("named", "known"), NAMED.values(), ids=NAMED)
def test_an_author_hears_the_same_of_what_others_have_and_of_what_nobody_has(
    named: Callable[[str], Action], known: str
) -> None:
    processes = [PYTHON, SHELL, PULL]
    [foreign] = unserved(named(known), SHIPPED, processes, "other", stored=False)
    [unknown] = unserved(named("nobodys"), SHIPPED, processes, "other", stored=False)
    assert foreign == unknown.replace("nobodys", known)


def test_a_stored_workflow_is_known() -> None:
    assert unserved(Action("workflow", {"workflow_id": "x"}), SHIPPED, [], "default", stored=True) == ()


def test_a_registry_says_what_its_launchers_know() -> None:
    commands = {"backup": CommandSpec(("true",))}
    clock = FixedClock()
    served = Registry([PythonLauncher(tasks(), clock), CommandLauncher(commands, clock), PullLauncher(clock)]).served()
    assert served.kinds == dict.fromkeys(["python", "command", "pull"], EVERYBODY)
    assert served.names == {"python": dict.fromkeys(tasks(), USUAL), "command": {"backup": USUAL}}


def test_what_is_published_is_read_again() -> None:
    assert read_served(json.loads(json.dumps(PYTHON.document()))) == PYTHON


def test_a_process_with_very_many_names_is_taken_to_know_all() -> None:
    many = Served({"python": EVERYBODY}, {"python": {str(n): USUAL for n in range(MAX_NAMES + 1)}})
    assert read_served(many.document()).knows("python", "anything", "default")
    wide = Audience(frozenset(str(n) for n in range(MAX_NAMES)))
    few = Served({"python": EVERYBODY}, {"python": {str(n): wide for n in range(6)}})
    assert read_served(few.document()).knows("python", "anything", "default")


@pytest.mark.parametrize("document", [None, 5, {}, {"kinds": []}, {"kinds": {"a": 5}}, {"kinds": {"a": "*"}}], ids=repr)
def test_a_row_that_says_nothing_serves_nothing(document: Any) -> None:
    assert read_served(document) == Served()
