"""Which launcher takes an action, what other packages may bring, and that nothing they do reaches the loop."""

from __future__ import annotations

import asyncio
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from launchers.far_ends import FixedClock, request_for
from structlog.testing import capture_logs

from horarium.audience import EVERYBODY, Audience
from horarium.core.document.definition import Action
from horarium.core.document.field import Field
from horarium.core.document.reader import SHIPPED, Kind
from horarium.core.lifecycle.outcome import (
    Accepted,
    Busy,
    Finished,
    Outcome,
    Refused,
    StillRunning,
    Unknown,
    Unreachable,
)
from horarium.errors import InvalidDefinition
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.pull import PullLauncher
from horarium.launchers.recording import RecordingLauncher
from horarium.launchers.registry import Registry, discover


def recording(kind: str, **script: Any) -> RecordingLauncher:
    return RecordingLauncher(FixedClock(), kind=kind, **script)


@pytest.mark.parametrize("kind", [kind for kind in SHIPPED if kind != "workflow"])
def test_an_action_goes_to_the_launcher_of_its_kind(kind: str) -> None:
    assert Registry([]).resolve(Action(kind), "default") == kind


@pytest.mark.parametrize(
    ("name", "expected"), [("a_task", "python"), ("a_workflow", "workflow"), ("both", "python"), ("neither", "pull")]
)
def test_a_workflow_action_goes_where_its_name_is_known(name: str, expected: str) -> None:
    registry = Registry(
        [],
        knows_task=lambda each, namespace: namespace == "default" and each in {"a_task", "both"},
        knows_workflow=lambda each, namespace: namespace == "default" and each in {"a_workflow", "both"},
    )
    action = Action("workflow", {"workflow_type": name})
    assert registry.resolve(action, "default") == registry.kind_of_target(f"workflow:{name}", "default") == expected
    assert registry.resolve(action, "other") == registry.kind_of_target(f"workflow:{name}", "other") == "pull"


def test_a_workflow_action_without_a_name_waits_for_a_worker() -> None:
    assert Registry([], knows_task=lambda *_: True).resolve(Action("workflow"), "default") == "pull"


def test_a_kind_without_a_launcher_is_told_with_those_that_are_there() -> None:
    registry = Registry([recording("http"), recording("pull")])
    with pytest.raises(InvalidDefinition, match="no launcher for 'celery' is installed; installed: http, pull"):
        registry.launcher_for(Action("celery"), "default")
    outcome = asyncio.run(registry.launch(request_for("celery")))
    assert isinstance(outcome, Refused)


def test_a_kind_for_others_is_told_in_the_words_for_one_that_nobody_brings() -> None:
    launchers = [recording("echo"), recording("http"), recording("pull")]
    registry = Registry(launchers, audiences={"echo": Audience(frozenset({"theirs"}))})
    said = [
        asyncio.run(registry.launch(request_for(kind, namespace=namespace)))
        for kind, namespace in [("echo", "mine"), ("noise", "mine"), ("echo", "theirs")]
    ]
    assert said[0] == Refused("action.kind: no launcher for 'echo' is installed; installed: http, pull")
    assert said[1] == Refused("action.kind: no launcher for 'noise' is installed; installed: http, pull")
    assert not isinstance(said[2], Refused)
    assert ("echo" in registry.kinds_for("theirs"), "echo" in registry.kinds_for("mine")) == (True, False)
    assert (registry.serves("echo", "theirs"), registry.serves("echo", "mine")) == (True, False)
    assert not registry.knows("echo", "anything", "mine")


def test_two_launchers_of_one_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="two launchers"):
        Registry([recording("http"), recording("http")])


def test_kinds_are_listed_in_order() -> None:
    registry = Registry([recording("pull"), recording("http")])
    assert list(registry) == ["http", "pull"]
    assert "http" in registry
    assert "celery" not in registry


class Broken(Launcher):
    kind = "http"
    honours_key = False
    concurrency = 1
    can_poll = False

    def __init__(self, answer: Any = None, error: Exception | None = None) -> None:
        self.answer, self.error, self.log = answer, error, list[str]()

    async def launch(self, request: LaunchRequest) -> Outcome:
        if self.error is not None:
            raise self.error
        return self.answer

    async def start(self) -> None:
        self.log.append("start")
        if self.error is not None:
            raise self.error

    async def close(self) -> None:
        self.log.append("close")


@pytest.mark.parametrize(
    ("launcher", "part"),
    [(Broken(error=KeyError("x")), "KeyError"), (Broken(None), "NoneType"), (Broken(True), "bool")],
    ids=["raises", "none", "bool"],
)
def test_a_launcher_that_breaks_the_contract_gives_unknown(launcher: Launcher, part: str) -> None:
    outcome = asyncio.run(Registry([launcher]).launch(request_for("http")))
    assert isinstance(outcome, Unknown)
    assert part in outcome.error


class BrokenAtOnce(Broken):
    launches_at_once = True

    def answer_at_once(self, request: LaunchRequest) -> Outcome:
        if self.error is not None:
            raise self.error
        return self.answer


@pytest.mark.parametrize(
    ("launcher", "expected"),
    [
        (BrokenAtOnce(error=KeyError("x")), Unreachable("the http launcher failed: KeyError: 'x'")),
        (BrokenAtOnce(7), Unreachable("the http launcher answered with int, which is not an outcome")),
        (BrokenAtOnce(Busy(3)), Busy(3)),
    ],
    ids=["raises", "odd", "good"],
)
def test_an_answer_at_once_never_raises_and_what_failed_has_started_nothing(
    launcher: Launcher, expected: Outcome
) -> None:
    assert Registry([launcher]).answer_at_once(request_for("http")) == expected


def test_an_answer_at_once_for_a_kind_that_is_not_installed_is_a_refusal() -> None:
    assert isinstance(Registry([]).answer_at_once(request_for("pull")), Refused)


def test_an_outcome_passes_through() -> None:
    registry = Registry([recording("http", script=[Busy(3)])])
    assert asyncio.run(registry.launch(request_for("http"))) == Busy(3)


def test_when_one_cannot_start_the_others_are_closed_again() -> None:
    good, bad = Broken(), Broken(error=RuntimeError("no"))
    bad.kind = "pull"
    with pytest.raises(RuntimeError, match="no"):
        asyncio.run(Registry([good, bad]).start())
    assert good.log == ["start", "close"]
    assert bad.log == ["start"]


def test_all_are_started_and_closed() -> None:
    one = Broken()
    registry = Registry([one])
    asyncio.run(registry.start())
    assert one.log == ["start"]
    asyncio.run(registry.close())
    assert one.log == ["start", "close"]


def test_the_table_says_which_launchers_honour_the_key() -> None:
    rows = Registry([PullLauncher(FixedClock()), Broken()]).documented_delivery()
    assert [(row.kind, row.honours_key) for row in rows] == [("http", False), ("pull", True)]
    assert rows[0].promise.startswith("at least once")


# Entry points


def make_celery() -> Launcher:
    return recording("celery")


def make_nothing() -> Launcher:
    raise RuntimeError("no broker")


def test_launchers_of_other_packages_are_found_and_broken_ones_named() -> None:
    here = __name__ if "." in __name__ else "launchers.test_registry"
    points = [
        EntryPoint(name, value, "horarium.launchers")
        for name, value in {
            "celery": f"{here}:make_celery",
            "kafka": f"{here}:make_celery",
            "sqs": f"{here}:make_nothing",
            "gone": "no.such.module:launcher",
        }.items()
    ]
    found = discover(points)
    assert [launcher.kind for launcher in found.launchers] == ["celery"]
    assert [problem.split(" ")[0] for problem in found.problems] == ["kafka", "sqs", "gone"]
    assert "no broker" in found.problems[1]


class Declaring(Broken):
    """Its declaration is made when it is loaded, as that of any package."""

    def __init__(self, **said: Any) -> None:
        super().__init__()
        for name, value in {"kind": "echo", **said}.items():
            setattr(self, name, value)


def make_two() -> Launcher:
    return Declaring()


def make_no_json() -> Launcher:
    return Declaring(declares=Kind("echo", {"text": Field("", {"default": object()})}))


def make_other_declaration() -> Launcher:
    return Declaring(declares=Kind("smoke"))


def make_no_flag() -> Launcher:
    return Declaring(can_poll="perhaps")


def make_no_number() -> Launcher:
    return Declaring(concurrency="many")


@pytest.mark.parametrize(
    ("makers", "text"),
    [
        (["make_no_json"], "must have a description that is JSON"),
        (["make_other_declaration"], "the launcher declares the kind 'smoke'"),
        (["make_no_flag"], "can_poll must be true or false"),
        (["make_no_number"], "concurrency must be an integer"),
        (["make_two", "make_two"], "another package provides a launcher of this kind"),
    ],
    ids=lambda each: each[-1] if isinstance(each, list) else "",
)
def test_a_declaration_that_would_fail_later_is_a_problem_at_once(makers: list[str], text: str) -> None:
    here = __name__ if "." in __name__ else "launchers.test_registry"
    found = discover([EntryPoint("echo", f"{here}:{maker}", "horarium.launchers") for maker in makers])
    [problem] = found.problems
    assert text in problem
    assert len(found.launchers) == len(makers) - 1


class Forgetful(Broken):
    def known_names(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.answer


@pytest.mark.parametrize(
    ("launcher", "known"),
    [
        (Forgetful(error=KeyError("x")), set()),
        (Forgetful(5), set()),
        (Forgetful([{}, 5, "a\x00", "b"]), {"b"}),
    ],
    ids=["raises", "odd", "odd names"],
)
def test_a_launcher_that_cannot_say_its_names_stops_nobody(launcher: Launcher, known: set[str]) -> None:
    registry = Registry([launcher, recording("pull")])
    assert registry.served().names == {"http": dict.fromkeys(known, EVERYBODY)}
    assert list(registry.served().document()["kinds"]) == ["http", "pull"]
    assert [registry.knows("http", name, "default") for name in "bc"] == ["b" in known, False]


def test_that_its_names_cannot_be_had_is_logged_once() -> None:
    registry = Registry([Forgetful(error=KeyError("x"))])
    with capture_logs() as logs:
        registry.served()
        registry.knows("http", "a", "default")
    assert [(each["event"], each["kind"]) for each in logs] == [("known_names_failed", "http")]


def test_without_other_packages_nothing_is_found() -> None:
    assert discover([]).launchers == ()
    assert discover().problems == ()


# The recording launcher


def test_the_recorder_answers_from_its_script_and_then_otherwise() -> None:
    launcher = recording("http", script=[Unreachable("down"), Accepted("r")], otherwise=Finished("end"))

    async def run() -> list[Outcome]:
        return [await launcher.launch(request_for("http", key=key)) for key in "aaab"]

    assert asyncio.run(run()) == [Unreachable("down"), Accepted("r"), Accepted("r"), Finished("end")]
    assert launcher.keys == ["a", "b"]
    assert [each.key for each in launcher.deliveries] == ["a", "a", "a", "b"]


def test_the_recorder_can_be_asked_and_told_to_stop() -> None:
    launcher = recording("http", polls=[StillRunning(), Finished(1)])

    async def run() -> list[Any]:
        request = request_for("http", cancelled=asyncio.Event())
        answers = [await launcher.poll(request, "r") for _ in range(3)]
        await launcher.cancel(request, "r")
        assert request.cancelled is not None
        return [*answers, request.cancelled.is_set(), launcher.cancels]

    *answers, stopped, cancels = asyncio.run(run())
    assert answers == [StillRunning(), Finished(1), StillRunning()]
    assert stopped is True
    assert [reference for _, reference in cancels] == ["r"]


# The pull launcher and the request


def test_a_run_waits_on_the_queue_of_its_action_or_on_the_default() -> None:
    launcher = PullLauncher(FixedClock())
    requests = [
        request_for("pull", queue="a"),
        request_for("workflow", {"workflow_type": "x"}),
    ]
    assert [launcher.answer_at_once(each) for each in requests] == [
        Accepted("a", queued=True),
        Accepted("default", queued=True),
    ]


@pytest.mark.parametrize("changes", [{"key": ""}, {"attempt": -1}], ids=["no key", "negative attempt"])
def test_a_request_is_valid_by_construction(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"key|attempt"):
        request_for("pull", **changes)


class _Narrow(PullLauncher):
    """Tells each namespace which connections there are, as another package may."""

    def __init__(self, answer: Any) -> None:
        super().__init__(FixedClock())
        self.answer = answer

    def connections_for(self, namespace: str) -> frozenset[str] | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if namespace == "mine" else frozenset()


CONNECTIONS: dict[str, tuple[Any, Any]] = {
    "any": (None, None),
    "some": (frozenset({"a"}), {"a"}),
    "no names": (["a", 7, "\ud800"], {"a"}),
    "fails": (RuntimeError("x"), set()),
}


@pytest.mark.parametrize(("answer", "known"), CONNECTIONS.values(), ids=CONNECTIONS)
def test_a_kind_knows_the_connections_that_its_launcher_has_for_a_namespace(answer: Any, known: Any) -> None:
    registry = Registry([_Narrow(answer)])
    assert registry.kinds_for("mine")["pull"].connections == known
    assert registry.kinds_for("theirs")["pull"].connections == frozenset()
    assert registry.kinds["pull"].connections is None
