"""Waiting for runs, watching lists and following the feed: how each goes on, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from cli.served import Server

from horarium.core.document.states import RunState
from horarium.errors import InvalidSpec
from horarium.features.history import commands as history_commands
from horarium.platform.cli import waiting
from horarium.platform.cli.times import read_span
from horarium.platform.cli.waiting import PollingLimit, ended_runs, fresh
from horarium.platform.client.errors import RunNotFound, ServerUnavailable

WORK = (
    "schedule",
    "create",
    "work",
    "--cron",
    "0 2 * * *",
    "--workflow-type",
    "w",
    "--queue",
    "q",
    "--max-retries",
    "0",
)


class Steps:
    """Stands where a wait sleeps: at each sleep the next thing happens; after the last one comes Ctrl-C."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.left = list(steps)

    def __call__(self, _seconds: float) -> None:
        if not self.left:
            raise KeyboardInterrupt
        self.left.pop(0)()


def nothing() -> None:
    pass


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    return lambda *steps: monkeypatch.setattr(waiting, "pause", Steps(*steps))


# ── how long ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("30s", 30), ("10m", 600), ("1h30m", 5_400), ("PT1H", 3_600), (" 2 days ", 172_800)],
)
def test_a_length_of_time(text: str, seconds: int) -> None:
    assert read_span(text, flag="--timeout") == seconds


@pytest.mark.parametrize("text", ["", "0", "-5", "soon", "tomorrow", "1y", "9" * 12, "1" * 5_000, "P1M"])
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(InvalidSpec, match=r"^--timeout: "):
        read_span(text, flag="--timeout")


def patience(seconds: float | None = None) -> tuple[PollingLimit, list[float]]:
    """On a clock that moves when it is slept on."""
    slept: list[float] = []
    return PollingLimit(seconds, sleep=slept.append, monotonic=lambda: sum(slept)), slept


def test_a_wait_asks_less_and_less_often_and_not_beyond_its_time() -> None:
    patient, slept = patience(10)
    while patient.rest():
        pass
    assert sum(slept) == pytest.approx(10)
    assert slept[0] < 1 < max(slept) <= 2


class Away:
    """A client whose server is away for its first answers."""

    def __init__(self, times: int, states: dict[str, RunState]) -> None:
        self.times, self.states = times, states

    def get_run(self, run_id: str) -> Any:
        self.times -= 1
        if self.times >= 0:
            raise ServerUnavailable("nobody there")
        return SimpleNamespace(run_id=run_id, state=self.states[run_id])


def test_a_wait_survives_a_restart_and_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    patient, _ = patience()
    client: Any = Away(5, {"a": RunState.SUCCEEDED})
    assert [run.run_id for run in ended_runs(client, ["a", "a"], patient)] == ["a"]
    assert capsys.readouterr().err == "nobody there; retrying for 120 s\n"


def test_a_server_that_stays_away_is_given_up() -> None:
    patient, slept = patience()
    client: Any = Away(10_000, {})
    with pytest.raises(ServerUnavailable):
        list(ended_runs(client, ["a"], patient))
    assert 60 < sum(slept) < 300


def test_a_server_that_stays_away_is_not_waited_for_beyond_the_time_that_was_given() -> None:
    patient, slept = patience(4.5)
    client: Any = Away(10_000, {})
    with pytest.raises(ServerUnavailable):
        list(ended_runs(client, ["a"], patient))
    assert sum(slept) == pytest.approx(4.5)


# ── trigger --wait, run wait ─────────────────────────────────────────────────────────────────────────


def test_a_trigger_waits_for_its_run_and_succeeds_with_it(server: Server, steps: Any) -> None:
    server.told(*WORK)
    service = server.service
    steps(nothing, service.settle, lambda: service.finish(service.runs()[-1], {"rows": 3}))
    answer = server.ask("schedule", "trigger", "work", "--wait", "-o", "json")
    told = json.loads(answer.out)
    assert (answer.code, told["outcome"], told["run"]["state"], told["run"]["result"]) == (
        0, "triggered", "succeeded", {"rows": 3},
    )  # fmt: skip


def test_a_trigger_that_waits_is_1_for_any_other_end(server: Server, steps: Any) -> None:
    server.told(*WORK)
    service = server.service
    steps(service.settle, lambda: service.fail(service.runs()[-1], "no space left"))
    answer = server.ask("schedule", "trigger", "work", "--wait")
    assert (answer.code, "failed" in answer.out, "no space left" in answer.out) == (1, True, True)
    server.told("schedule", "pause", "work")
    answer = server.ask("schedule", "trigger", "work", "--wait")
    assert (answer.code, answer.out.split()[:2]) == (1, ["outcome", "skipped:"])


def test_a_run_that_takes_too_long_is_1_and_goes_on(
    server: Server, steps: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.told(*WORK)
    run_id = json.loads(server.told("schedule", "trigger", "work", "-o", "json"))["run_id"]
    passed = [0.0]
    clock = SimpleNamespace(monotonic=lambda: passed[0])
    monkeypatch.setattr(waiting, "SystemClock", lambda: clock)
    steps(nothing, lambda: passed.__setitem__(0, 61.0))
    answer = server.ask("run", "wait", run_id, "--timeout", "1m", "-o", "json")
    assert (answer.code, json.loads(answer.out)) == (1, {"runs": [], "not_ended": [run_id]})
    assert answer.err == f"not ended after 60 s: {run_id}\n"


def test_run_wait_is_0_when_all_have_succeeded_and_1_when_one_has_not(server: Server, steps: Any) -> None:
    server.told(*WORK, "--overlap-policy", "allow_all", "--max-concurrency", "5")
    service = server.service
    good, bad = (json.loads(server.told("schedule", "trigger", "work", "-o", "json"))["run_id"] for _ in range(2))
    steps(service.settle, lambda: service.finish(service.runs()[0]), lambda: service.fail(service.runs()[1]))
    answer = server.ask("run", "wait", good, bad)
    assert (answer.code, "succeeded" in answer.out, "failed" in answer.out) == (1, True, True)
    assert server.ask("run", "wait", good).code == 0
    assert server.ask("run", "wait", good, bad, "-o", "jsonl").out.count("\n") == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["run", "wait", "01JQ8Z6H4M8X2V0T1R3S5W7Y9B"], 5),
        (["run", "wait", "x", "--timeout", "soon"], 2),
        (["run", "wait", *map(str, range(101))], 2),
        (["schedule", "trigger", "work", "--timeout", "5"], 2),
        (["run", "list", "--watch", "-o", "json"], 2),
        (["run", "list", "--watch", "--all"], 2),
        (["run", "list", "--watch", "--limit", "5000"], 2),
        (["events", "--follow", "-o", "yaml"], 2),
        (["events", "--follow", "--kind", "schedule_skiped"], 2),
    ],
    ids=lambda value: " ".join(value[:4]) if isinstance(value, list) else str(value),
)
def test_what_cannot_be_waited_for_is_one_line(empty_server: Server, arguments: list[str], code: int) -> None:
    answer = empty_server.ask(*arguments)
    assert (answer.code, answer.out, answer.err.count("\n")) == (code, "", 1)


# ── run list --watch ─────────────────────────────────────────────────────────────────────────────────


def test_only_what_is_new_or_has_changed_is_told_and_no_more_is_remembered_than_is_listed() -> None:
    seen: dict[Hashable, Hashable] = {}
    rows: Any = [("b", 1, "b1"), ("a", 1, "a1")]
    assert fresh(seen, rows) == ["b1", "a1"]
    assert fresh(seen, rows) == []
    later: Any = [("c", 1, "c1"), ("b", 2, "b2")]
    assert fresh(seen, later) == ["c1", "b2"]
    assert set(seen) == {"b", "c"}


def test_a_watched_list_prints_what_becomes_of_runs_until_ctrl_c(server: Server, steps: Any) -> None:
    server.told(*WORK)
    service = server.service
    server.told("schedule", "trigger", "work")
    steps(nothing, service.settle, nothing, lambda: service.finish(service.runs()[-1]))
    answer = server.ask("run", "list", "--watch", "--schedule", "work")
    head, *rows = answer.out.splitlines()
    assert (answer.code, answer.err, head.split()[:2]) == (0, "", ["Run", "ID"])
    assert [row.split()[3] for row in rows] == ["ready", "running", "succeeded"]


# ── events ───────────────────────────────────────────────────────────────────────────────────────────


def test_events_are_told_newest_last_and_by_kind_and_schedule(server: Server) -> None:
    server.told(*WORK)
    server.told("schedule", "create", "other", "--every", "PT1H", "--workflow-type", "w", "--queue", "q")
    server.told("schedule", "pause", "work")
    kinds = [json.loads(line)["kind"] for line in server.told("events", "-o", "jsonl").splitlines()]
    assert kinds == ["schedule_created", "schedule_created", "schedule_paused"]
    assert "schedule_paused" in server.told("events", "--schedule", "work", "--limit", "1")
    told = json.loads(server.told("events", "--kind", "schedule_created", "--schedule", "other", "-o", "json"))
    assert [entry["schedule_id"] for entry in told["entries"]] == ["other"]
    assert server.ask("events", "--kind", "schedule_resumed").err == "no matching events in namespace default\n"


def test_following_goes_on_after_what_was_shown_until_ctrl_c(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.told(*WORK)
    shown: list[str] = []

    def tell(row: Any) -> None:
        shown.append(row["kind"])
        if len(shown) == 1:
            server.service.http().post("/api/schedules/work/pause")
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr(waiting, "show_json", tell)
    assert server.ask("events", "--follow", "-o", "jsonl").code == 0
    assert shown == ["schedule_created", "schedule_paused"]


def test_a_stream_survives_a_restart_and_loses_and_repeats_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[str] = []
    kept = ["1", "2", "3"]

    def listen(*, last_event_id: str) -> Iterator[Any]:
        asked.append(last_event_id)
        for each in kept[kept.index(last_event_id) + 1 :] if last_event_id in kept else kept:
            yield SimpleNamespace(id=each)
            if len(asked) == 1:
                raise ServerUnavailable("it restarts")
        if len(asked) < 3:
            raise ServerUnavailable("it restarts")

    patient, _ = patience()
    remote: Any = SimpleNamespace(client=SimpleNamespace(events=listen))
    assert [entry.id for entry in history_commands.stream(remote, "0-0", patient)] == ["1", "2", "3"]
    assert asked == ["0-0", "1", "3"]
    assert capsys.readouterr().err == "it restarts; retrying for 120 s\n" * 2


def test_a_refusal_ends_a_wait_at_once() -> None:
    class Refusing:
        def get_run(self, run_id: str) -> Any:
            raise RunNotFound(run_id)

    client: Any = Refusing()
    with pytest.raises(RunNotFound):
        list(ended_runs(client, ["a"], patience()[0]))
