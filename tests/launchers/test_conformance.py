"""Every launcher keeps the contract of `launcher.py`, against real servers, threads and processes."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from typing import Any, get_args

import orjson
import pytest
from launchers.conformance import CASES, Case, Far
from launchers.far_ends import FOR_EVER, KEY

import horarium.launchers
from horarium.core.document.reader import PROMPT
from horarium.core.lifecycle.outcome import Accepted, Finished, Outcome, Refused, RunCancelled, RunTimedOut, Unknown
from horarium.launchers.launcher import Launcher
from horarium.launchers.payload import MAX_RESULT_BYTES

each_launcher = pytest.mark.parametrize("case", CASES.values(), ids=CASES)

HOSTILE: dict[str, Any] = {
    "number": 7,
    "true": True,
    "list": ["a", {"b": 1}],
    "object": {"x": "y"},
    "long": "a" * 10_000,
    "nul": "a\x00b",
    "surrogate": "\ud800",
    "newline": "a\r\nHost: evil",
    "empty": "",
}
NOT_JSON: dict[str, Any] = {
    "nan": {"a": [float("nan")]},
    "infinity": float("inf"),
    "object": object(),
    "bytes": b"x",
    "set": {1},
    "key": {1: 2},
    "surrogate": ["\ud800"],
    "nul": "\x00",
    "huge": 2**70,
    "deep": None,
}
for _ in range(10_000):
    NOT_JSON["deep"] = [NOT_JSON["deep"]]


def test_every_launcher_has_a_case() -> None:
    for module in pkgutil.walk_packages(horarium.launchers.__path__, "horarium.launchers."):
        importlib.import_module(module.name)
    ours = {each for each in Launcher.__subclasses__() if each.__module__.startswith("horarium.launchers.")}
    assert {case.launcher for case in CASES.values()} == ours


@each_launcher
def test_a_target_that_works_gives_the_inputs_back_unchanged(case: Case) -> None:
    inputs = {"value": {"text": "naïve — 日本語 🎉 \\ \" ' $HOME `id` %s", "n": [1, 2.5, None, True], "": "\n\t"}}

    async def run() -> Outcome:
        async with case.up() as far:
            return await far.launcher.launch(far.request(case.kind, far.echo, inputs=inputs))

    outcome = asyncio.run(run())
    if isinstance(outcome, Accepted):
        assert outcome == Accepted(KEY if case.kind == "celery" else "default", queued=True)
    else:
        given = inputs if case.kind != "python" else inputs["value"]
        assert isinstance(outcome, Finished)
        assert case.read(outcome.result) == {"inputs": given}


@each_launcher
def test_bad_targets_give_outcomes_and_never_raise(case: Case) -> None:
    async def run() -> list[tuple[Any, Outcome]]:
        async with case.up() as far:
            requests = [far.request(case.kind, target) for target in far.bad]
            requests += [
                far.request(case.kind, {**far.echo, field: value})
                for field in case.fields
                for value in HOSTILE.values()
            ]
            return [(each.action.target, await far.launcher.launch(each)) for each in requests]

    for target, outcome in asyncio.run(run()):
        assert isinstance(outcome, get_args(Outcome)), target
        assert len(getattr(outcome, "error", "")) <= 4_000


@each_launcher
def test_the_deadline_is_kept(case: Case) -> None:
    async def run() -> Outcome | None:
        async with case.up() as far:
            if far.slow is None:
                return None
            return await far.launcher.launch(far.request(case.kind, far.slow, seconds=1))

    outcome = asyncio.run(run())  # a launch that is not stopped is finished or refused by the far end
    assert outcome is None or isinstance(outcome, RunTimedOut)


@each_launcher
def test_a_passed_deadline_touches_nothing(case: Case) -> None:
    async def run(far: Far) -> Outcome:
        return await far.launcher.launch(far.request(case.kind, far.echo, seconds=0))

    assert isinstance(_with(case, run), RunTimedOut)


@each_launcher
def test_cancel_ends_a_launch_in_flight(case: Case) -> None:
    async def run(far: Far) -> Outcome | None:
        if far.slow is None:
            return None
        request = far.request(case.kind, far.slow, cancelled=asyncio.Event())
        launch = asyncio.ensure_future(far.launcher.launch(request))
        await asyncio.sleep(0.3)
        await far.launcher.cancel(request, None)
        return await launch

    found = _with(case, run)
    assert found is None or isinstance(found, RunCancelled)


@each_launcher
def test_a_run_that_is_cancelled_already_is_not_launched(case: Case) -> None:
    async def run(far: Far) -> Outcome:
        cancelled = asyncio.Event()
        cancelled.set()
        return await far.launcher.launch(far.request(case.kind, far.echo, cancelled=cancelled))

    assert isinstance(_with(case, run), RunCancelled)


@each_launcher
def test_shutting_down_ends_a_launch_in_flight(case: Case) -> None:
    async def run(far: Far) -> None:
        if far.slow is None:
            return
        launch = asyncio.ensure_future(far.launcher.launch(far.request(case.kind, far.slow)))
        await asyncio.sleep(0.3)
        launch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(launch, FOR_EVER)

    _with(case, run)


@each_launcher
def test_inputs_that_are_no_json_are_refused(case: Case) -> None:
    async def run(far: Far) -> dict[str, Outcome]:
        requests = {name: far.request(case.kind, far.echo, inputs=inputs) for name, inputs in NOT_JSON.items()}
        return {name: await far.launcher.launch(request) for name, request in requests.items()}

    for name, outcome in _with(case, run).items():
        assert isinstance(outcome, Refused), name
        assert outcome.error.startswith("the input "), name


@each_launcher
def test_a_big_result_is_cut_and_says_so(case: Case) -> None:
    async def run(far: Far) -> Outcome | None:
        return None if far.big is None else await far.launcher.launch(far.request(case.kind, far.big))

    outcome = _with(case, run)
    if outcome is not None:
        assert isinstance(outcome, Finished)
        assert outcome.result["truncated"] is True
        assert len(orjson.dumps(outcome.result)) < MAX_RESULT_BYTES


@each_launcher
def test_the_same_key_twice_is_harmless_where_the_key_is_honoured(case: Case) -> None:
    async def run(far: Far) -> tuple[bool, Outcome, Outcome]:
        request = far.request(case.kind, far.echo, inputs=["once"])
        return far.launcher.honours_key, await far.launcher.launch(request), await far.launcher.launch(request)

    honours, first, second = _with(case, run)
    if honours:
        assert first == second
    else:
        assert isinstance(second, Finished | Accepted)


@each_launcher
def test_many_at_once_do_not_mix_up_their_answers(case: Case) -> None:
    async def run(far: Far) -> list[Outcome]:
        requests = [
            far.request(case.kind, far.echo, run_id=f"run-{n}", key=f"key-{n}", inputs=[n]) for n in range(case.herd)
        ]
        return await asyncio.gather(*(far.launcher.launch(each) for each in requests))

    for n, outcome in enumerate(_with(case, run)):
        if not isinstance(outcome, Accepted):
            assert isinstance(outcome, Finished)
            assert case.read(outcome.result)["inputs"] in (n, [n])


@each_launcher
def test_the_attributes_of_the_contract_are_there(case: Case) -> None:
    async def run(far: Far) -> Launcher:
        await far.launcher.start()
        return far.launcher

    launcher = _with(case, run)
    assert isinstance(launcher.kind, str)
    assert isinstance(launcher.honours_key, bool)
    assert isinstance(launcher.can_poll, bool)
    assert isinstance(launcher.works_here, bool)
    assert launcher.concurrency is None or launcher.concurrency >= 1


@each_launcher
def test_only_launches_that_last_as_long_as_the_work_have_places_of_their_own(case: Case) -> None:
    async def run(far: Far) -> Launcher:
        return far.launcher

    launcher = _with(case, run)
    lasts = launcher.works_here or launcher.kind == PROMPT.name
    assert (launcher.concurrency is not None) is lasts


@each_launcher
def test_a_launcher_answers_at_once_or_says_that_it_cannot(case: Case) -> None:
    async def run(far: Far) -> None:
        request = far.request(case.kind, far.echo, inputs=["now"])
        if far.launcher.launches_at_once:
            assert far.launcher.answer_at_once(request) == await far.launcher.launch(request)
        else:
            with pytest.raises(TypeError, match="no immediate result"):
                far.launcher.answer_at_once(request)

    _with(case, run)


@each_launcher
def test_a_launcher_that_cannot_be_asked_says_so(case: Case) -> None:
    async def run(far: Far) -> tuple[bool, Any]:
        return far.launcher.can_poll, await far.launcher.poll(far.request(case.kind, far.echo), None)

    can_poll, answer = _with(case, run)
    assert can_poll or isinstance(answer, Unknown)


def _with(case: Case, run: Any) -> Any:
    async def main() -> Any:
        async with case.up() as far:
            return await run(far)

    return asyncio.run(main())
