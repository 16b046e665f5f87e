"""The operator's function may be slow, may fail and may hang: who asks, waits no longer than the limit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from horarium.core.decision.facts import Signal
from horarium.instant import SECOND
from horarium.launchers import signals as module
from horarium.launchers.signals import Signals
from horarium.testing import FakeClock

NOW = 1_000 * SECOND


class Provider:
    """Counts its calls; with `hang` it answers nobody of that namespace until the test lets it."""

    def __init__(self, answer: Any = None, *, hang: str | None = None) -> None:
        self.answer, self.hang = answer, hang
        self.calls: list[tuple[str, str]] = []
        self.go_on = threading.Event()

    def __call__(self, namespace: str, schedule_id: str) -> Any:
        self.calls.append((namespace, schedule_id))
        if namespace == self.hang:
            self.go_on.wait(30)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@contextmanager
def asking(provider: Any, clock: FakeClock | None = None, **options: Any) -> Iterator[Signals]:
    signals = Signals(provider, clock=clock, **{"timeout_seconds": 30, **options})
    yield signals
    if isinstance(provider, Provider):
        provider.go_on.set()
    signals.close()


def test_an_answer_is_kept_for_a_while_and_asked_for_again() -> None:
    provider = Provider({"depth": 3})
    with asking(provider, cache_seconds=10) as signals:
        assert [signals.ask("a", "s", NOW + n * SECOND) for n in range(3)] == [Signal({"depth": 3})] * 3
        assert provider.calls == [("a", "s")]
        signals.ask("a", "s", NOW + 10 * SECOND)
        assert len(provider.calls) == 2
        signals.ask("a", "s", NOW - 10 * SECOND)
        assert len(provider.calls) == 3, "a clock that was set back makes no answer good for ever"


def test_a_glance_waits_for_nothing_and_shows_the_newest_answer() -> None:
    """A view over many schedules takes it; the answer is asked for where there is none."""
    clock, answers = FakeClock(), iter([1, 2])
    with asking(lambda *_: next(answers), clock) as signals:
        assert signals.glance("default", "s", clock.now()) == Signal()
        assert signals.ask("default", "s", clock.now()) == Signal(1)
        clock.advance(seconds=3_600)
        assert signals.glance("default", "s", clock.now()) == Signal(1), "an old answer is better than none"
        assert signals.ask("default", "s", clock.now()) == Signal(2)
        assert signals.glance("default", "s", clock.now()) == Signal(2)


def test_each_schedule_has_its_own() -> None:
    with asking(lambda namespace, schedule_id: f"{namespace}/{schedule_id}") as signals:
        assert signals.ask("a", "s", NOW).value == "a/s"
        assert signals.ask("b", "s", NOW).value == "b/s"


async def later(namespace: str, schedule_id: str) -> int:
    return 7


def test_a_coroutine_function_will_do() -> None:
    with asking(later) as signals:
        assert signals.ask("a", "s", NOW) == Signal(7)


class Odd:
    pass


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ValueError("no such queue"), "ValueError: no such queue"),
        (SystemExit(3), "SystemExit: 3"),
        (Odd(), "not JSON serializable"),
        (float("nan"), "not JSON compliant"),
        ("x" * 70_000, "longer than 65536 bytes"),
        (2**70, "cannot be stored"),
        ("\x00", "cannot be stored"),
    ],
    ids=["raises", "exits", "no JSON", "NaN", "long", "large", "NUL"],
)
def test_what_is_no_answer_is_null_and_says_why(answer: Any, error: str) -> None:
    with asking(Provider(answer)) as signals:
        found = signals.ask("a", "s", NOW)
    assert found.value is None
    assert found.error is not None
    assert error in found.error


def test_an_answer_is_a_copy() -> None:
    kept = {"depth": 3}
    with asking(Provider(kept)) as signals:
        found = signals.ask("a", "s", NOW)
        kept["depth"] = 4
        assert found.value == {"depth": 3}


def test_whoever_does_not_wait_is_told_to_look_again_and_after_the_limit_that_there_is_none() -> None:
    provider, clock = Provider(1, hang="a"), FakeClock()
    with asking(provider, clock, timeout_seconds=5) as signals:
        assert signals.take("a", "s", NOW) is None
        assert signals.open == 1
        clock.advance(4)
        assert signals.take("a", "s", NOW) is None
        clock.advance(1)
        assert signals.take("a", "s", NOW) == Signal(error="no answer within 5 seconds")
        assert signals.open == 0


def test_an_answer_without_a_cache_is_good_for_whoever_asked_however_late_it_is_fetched() -> None:
    provider = Provider(1)
    with asking(provider, cache_seconds=0) as signals:
        assert signals.take("a", "s", NOW) is None
        while signals.open:
            signals.wait()
        assert signals.take("a", "s", NOW + 3_600 * SECOND) == Signal(1)
        assert signals.take("a", "s", NOW + 3_600 * SECOND) is None


def test_a_namespace_that_hangs_keeps_nobody_else_waiting() -> None:
    provider = Provider(1, hang="a")
    with asking(provider) as signals:
        for n in range(50):
            assert signals.take("a", f"s{n}", NOW) is None
        assert signals.ask("b", "s", NOW) == Signal(1)
        assert sum(1 for namespace, _ in provider.calls if namespace == "a") <= 4


def test_what_nobody_can_wait_for_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN", 8)
    with asking(Provider(1, hang="a")) as signals:
        found = [signals.take("a", f"s{n}", NOW) for n in range(3)]
    assert found == [None, None, Signal(error="too many signal requests are in progress")]


def test_a_question_whose_schedule_is_gone_frees_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN", 4)
    clock = FakeClock()
    with asking(Provider(1, hang="a"), clock, timeout_seconds=5) as signals:
        assert signals.take("a", "gone", NOW) is None
        clock.advance(5)
        assert signals.take("a", "s", NOW) is None, "there is room again"


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_QUESTIONS", 2)
    provider = Provider(1)
    with asking(provider) as signals:
        for name in ("s", "t", "u", "s"):
            signals.ask("a", name, NOW)
    assert len(provider.calls) == 4
