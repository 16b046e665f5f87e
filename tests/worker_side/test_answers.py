"""What an answer means for the reports that were sent, and how a sender goes on after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from horarium.celery.sender import Halve, Processed, ReportSender, SendLater, Verdict, judge, pause_seconds
from horarium.celery.spool import Spool
from horarium.celery.spool_file import Destination, line_of
from horarium.core.document.states import RunState
from horarium.features.runs.model import RunReportOutcome
from horarium.platform.client.errors import ClientError, RateLimited, ServerUnavailable, Unauthorized, UnexpectedAnswer
from horarium.platform.wire import ReportOutcome
from horarium.testing.doubles import FakeClock

HERE, THERE = (Destination(f"https://{name}.example", "default") for name in ("here", "there"))


def outcome(status: int = 200) -> RunReportOutcome:
    if status == 200:
        recorded = ReportOutcome.RECORDED
        return RunReportOutcome(run_id="r", status=status, outcome=recorded, state=RunState.SUCCEEDED)
    return RunReportOutcome(run_id="r", status=status, outcome=None, state=None, reason="why", message="so")


def said(status: int, reason: str = "error") -> ClientError:
    kind = Unauthorized if status == 401 else ClientError
    return kind("no", status=status, body={"reason": reason})


def limited(seconds: float) -> RateLimited:
    error = RateLimited("slowly", status=429)
    error.retry_after = seconds
    return error


OURS = said(401, "unauthorized")
WHY = "why: so"
VERDICTS: list[tuple[str, int, Any, bool, Verdict]] = [
    ("all taken", 2, [outcome(), outcome()], False, Processed(2)),
    ("one refused", 3, [outcome(), outcome(404), outcome()], False, Processed(3, ((1, WHY),))),
    ("one to be sent again", 3, [outcome(), outcome(503), outcome()], False, Processed(1)),
    ("refused before it", 3, [outcome(422), outcome(500), outcome()], False, Processed(1, ((0, WHY),))),
    ("the first to be sent again", 2, [outcome(429), outcome()], False, SendLater(WHY)),
    ("too few outcomes", 2, [outcome()], False, SendLater("received 1 outcomes for 2 reports")),
    ("unreadable", 4, said(400), False, Halve()),
    ("too large", 2, said(413), True, Halve()),
    ("unreadable alone", 1, said(422), True, Processed(1, ((0, "no"),))),
    ("nobody's tokens", 5, OURS, False, Halve()),
    ("nobody's token", 1, OURS, False, Processed(1, ((0, "no"),))),
    ("our token is not good", 1, OURS, True, SendLater("no")),
    ("somebody else's 401", 1, said(401), False, SendLater("no")),
    ("forbidden", 1, said(403), True, SendLater("no")),
    ("no such route", 1, said(404), False, SendLater("no")),
    ("nobody knows", 1, said(409), False, SendLater("no")),
    ("its own defect", 1, said(500), False, SendLater("no")),
    ("a page", 1, UnexpectedAnswer("no", status=200), False, SendLater("no")),
    ("nobody there", 1, ServerUnavailable("no"), False, SendLater("no")),
    ("too often", 1, limited(7), False, SendLater("slowly", 7)),
    ("too often for a year", 1, limited(31_536_000), False, SendLater("slowly", 300)),
]


@pytest.mark.parametrize(
    ("sent", "answer", "with_token", "verdict"), [row[1:] for row in VERDICTS], ids=[row[0] for row in VERDICTS]
)
def test_what_an_answer_means(sent: int, answer: Any, with_token: bool, verdict: Verdict) -> None:
    assert judge(sent, answer, with_token=with_token) == verdict


def test_pauses_grow_to_half_a_minute_and_heed_what_the_service_asks_for() -> None:
    pauses = [pause_seconds(failures, 0, "k") for failures in range(1, 12)]
    assert 0.25 <= pauses[0] <= 0.5
    assert all(15 <= each <= 30 for each in pauses[6:])
    assert pause_seconds(1, 45.0, "k") == 45.0


# ── a sender ─────────────────────────────────────────────────────────────────────────────────────────


class FarEnd:
    """A service that does as it is told: `answers` one by one, then takes everything."""

    def __init__(self, *answers: Callable[[list[dict[str, Any]]], Sequence[RunReportOutcome]]) -> None:
        self.answers = list(answers)
        self.heard: list[list[str]] = []

    def post(self, _destination: Destination, documents: list[dict[str, Any]]) -> Sequence[RunReportOutcome]:
        self.heard.append([each["run_id"] for each in documents])
        if self.answers:
            return self.answers.pop(0)(documents)
        return [outcome() for _ in documents]


def gone(_documents: Any) -> Sequence[RunReportOutcome]:
    raise ServerUnavailable("nobody there")


def lost(_documents: Any) -> Sequence[RunReportOutcome]:
    """It was done, and the answer did not come."""
    raise ServerUnavailable("no answer in time")


class World:
    def __init__(self, directory: Path, far_end: FarEnd) -> None:
        self.clock, self.spool, self.far_end = FakeClock(), Spool(directory), far_end
        self.sender = ReportSender(self.spool, far_end.post, lambda _: False, self.clock)

    def put(self, *names: str, destination: Destination = HERE) -> None:
        for name in names:
            self.spool.put(destination, line_of({"run_id": name}, final=True))

    def send(self) -> None:
        while self.sender.step():
            pass


def test_a_service_that_is_away_is_asked_again_ever_more_rarely_and_nothing_is_lost(tmp_path: Path) -> None:
    world = World(tmp_path, FarEnd(gone, gone, lost))
    world.put("a", "b")
    for _ in range(10):
        world.send()
        world.clock.advance(1)
    assert world.far_end.heard == [["a", "b"]] * 4
    assert world.spool.sources == []


def test_a_report_that_is_refused_is_given_up_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path, FarEnd(lambda documents: [outcome(404), *(outcome() for _ in documents[1:])]))
    world.put("a", "b", "c")
    world.send()
    assert world.far_end.heard == [["a", "b", "c"]]
    assert "the report on the run a is given up: why: so" in caplog.text
    assert world.spool.sources == []


def test_one_that_keeps_the_others_from_being_read_is_found_by_halves(tmp_path: Path) -> None:
    def chokes(documents: list[dict[str, Any]]) -> Sequence[RunReportOutcome]:
        if any(each["run_id"] == "bad" for each in documents):
            raise said(422)
        return [outcome() for _ in documents]

    world = World(tmp_path, FarEnd(*[chokes] * 30))
    world.put("a", "b", "bad", "c", "d")
    world.send()
    assert world.spool.sources == []
    taken = [name for names in world.far_end.heard if "bad" not in names for name in names]
    assert taken == ["a", "b", "c", "d"]
    assert ["bad"] in world.far_end.heard


def test_one_service_that_is_away_keeps_nobody_waiting_for_another(tmp_path: Path) -> None:
    class Two(FarEnd):
        def post(self, destination: Destination, documents: list[dict[str, Any]]) -> Sequence[RunReportOutcome]:
            if destination == THERE:
                raise ServerUnavailable("nobody there")
            return super().post(destination, documents)

    world = World(tmp_path, Two())
    world.put("x", destination=THERE)
    world.put("a", "b")
    world.send()
    assert world.far_end.heard == [["a", "b"]]
    assert [file.destination for file in world.spool.sources] == [THERE]


def test_a_hundred_at_most_go_at_once_and_no_more_than_a_request_may_have(tmp_path: Path) -> None:
    world = World(tmp_path, FarEnd())
    world.put(*(f"r{number}" for number in range(250)))
    world.send()
    assert [len(names) for names in world.far_end.heard] == [100, 100, 50]
    world.far_end.heard.clear()
    world.put(*(f"{number}{'x' * 300_000}" for number in range(5)))
    world.send()
    assert [len(names) for names in world.far_end.heard] == [2, 2, 1]


def test_lines_that_are_no_reports_are_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path, FarEnd())
    world.put("a")
    world.spool.put(HERE, b"F {broken\n")
    world.put("b")
    world.spool.put(HERE, b"\x00\xff\n")
    world.send()
    assert [name for names in world.far_end.heard for name in names] == ["a", "b"]
    assert world.spool.sources == []
    world.spool.put(HERE, b"F [1]\n")
    world.send()
    assert "are no reports" in caplog.text
    assert world.spool.sources == []


def test_rate_limits_are_heeded(tmp_path: Path) -> None:
    def too_often(_documents: Any) -> Sequence[RunReportOutcome]:
        raise limited(7)

    world = World(tmp_path, FarEnd(too_often))
    world.put("a")
    world.send()
    world.clock.advance(6)
    world.send()
    assert len(world.far_end.heard) == 1
    world.clock.advance(2)
    world.send()
    assert len(world.far_end.heard) == 2
