"""Many clients at once, and answers that break: one wins, the others hear why, and nobody is told to do it again."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import httpx
import pytest
import sqlalchemy as sa

from horarium.core.lifecycle.outcome import Outcome
from horarium.features.calendars import routes as calendar_routes
from horarium.features.runs import routes as run_routes
from horarium.features.schedules import guard_routes as trigger_routes
from horarium.features.schedules import lifecycle, views
from horarium.features.schedules import routes as schedule_routes
from horarium.features.schedules import rows as schedule_rows
from horarium.platform.database.errors import StoreUnavailable
from horarium.platform.database.tables import history
from horarium.testing import Accepted, TestService

pytestmark = pytest.mark.both_databases

T = TypeVar("T")

THREADS = 8
HOURLY: dict[str, Any] = {"schedule_id": "s", "cron_expressions": ["0 * * * *"], "workflow_type": "report"}


@pytest.fixture
def answer() -> Outcome:
    """Every run waits on a queue until a worker takes it."""
    return Accepted(reference="q", queued=True)


def at_once(works: Sequence[Callable[[], T]]) -> list[T]:
    """All of them begin together."""
    begin = threading.Barrier(min(len(works), THREADS))

    def run(number: int, work: Callable[[], T]) -> T:
        if number < THREADS:
            begin.wait(60)
        return work()

    with ThreadPoolExecutor(THREADS) as pool:
        return [done.result() for done in [pool.submit(run, number, work) for number, work in enumerate(works)]]


def sequences(horarium: TestService, schedule_id: str) -> list[int]:
    return [event.sequence for event in horarium.history(schedule_id)]


def in_order(horarium: TestService, schedule_id: str) -> bool:
    found = sequences(horarium, schedule_id)
    return found == list(range(1, len(found) + 1))


# ── the same version, the same key ───────────────────────────────────────────────────────────────────

WRITES: dict[str, Callable[[httpx.Client, str], httpx.Response]] = {
    "PUT": lambda http, note: http.put("/api/schedules/s", json={"note": note}, headers={"If-Match": '"1"'}),
    "PATCH": lambda http, note: http.patch("/api/schedules/s", json={"note": note}, headers={"If-Match": '"1"'}),
    "DELETE": lambda http, _: http.delete("/api/schedules/s", headers={"If-Match": '"1"'}),
    "pause": lambda http, note: http.post("/api/schedules/s/pause", json={"note": note}, headers={"If-Match": '"1"'}),
    "rotation": lambda http, note: http.put(
        "/api/schedules/s/rotation", json={"inputs_rotation": [{"note": note}]}, headers={"If-Match": '"1"'}
    ),
}


def test_of_two_who_give_a_workspace_the_same_name_one_does(horarium: TestService) -> None:
    horarium.http().post("/api/agents", json={"id": "writer"}).raise_for_status()
    body = {"name": "Audit", "cron_expr": "0 9 * * *", "prompt": "p"}
    path = "/workspaces/writer/schedules"
    answers = at_once([lambda: horarium.http().post(path, json=body) for _ in range(2)])
    assert sorted(answer.status_code for answer in answers) == [201, 409]


@pytest.mark.parametrize("how", WRITES)
def test_of_two_who_have_seen_the_same_version_one_writes(horarium: TestService, how: str) -> None:
    horarium.create(HOURLY)
    answers = at_once([lambda note=note: WRITES[how](horarium.http(), note) for note in ("a", "b")])
    statuses = sorted(answer.status_code for answer in answers)
    # Who comes after a deletion finds nothing to compare with.
    assert statuses == ([200, 404] if how == "DELETE" else [200, 412])
    assert len(horarium.history("s")) == 2
    assert in_order(horarium, "s")


def test_of_writers_by_different_doors_one_writes(horarium: TestService) -> None:
    horarium.create(HOURLY)
    answers = at_once([lambda write=write: write(horarium.http(), "x") for write in WRITES.values()])
    counts = Counter(answer.status_code for answer in answers)
    assert counts[200] == 1
    assert set(counts) <= {200, 404, 412}
    assert in_order(horarium, "s")


KEYED: dict[str, tuple[str, dict[str, Any]]] = {
    "create": ("/api/schedules", {"cron_expressions": ["0 2 * * *"], "workflow_type": "report"}),
    "upsert": ("/api/schedules/upsert", {**HOURLY, "schedule_id": "t"}),
    "trigger": ("/api/schedules/s/trigger", {"overlap_policy": "allow_all"}),
    "backfill": ("/api/schedules/s/backfill", {"from": "2026-02-20T00:00:00Z", "to": "2026-02-20T03:00:00Z"}),
    "calendar": ("/api/calendars", {"name": "ours", "kind": "skip_dates", "dates": ["2026-12-24"]}),
    "start": ("/api/run-launcher/start", {"workflow_id": "report", "idempotency_key": "inner"}),
}


@pytest.mark.parametrize("what", KEYED)
def test_eight_who_repeat_one_key_do_it_once(horarium: TestService, what: str) -> None:
    """Each hears the one answer, or that it is being made at this moment; whoever asks again then hears it."""
    horarium.create(HOURLY)
    path, body = KEYED[what]

    def ask() -> httpx.Response:
        return horarium.http().post(path, json=body, headers={"Idempotency-Key": "k"})

    answers = at_once([ask] * (2 * THREADS))
    events = len(horarium.history("s"))
    made = [answer for answer in answers if answer.is_success]
    rest = {(answer.status_code, answer.json()["reason"]) for answer in answers if not answer.is_success}
    assert rest <= {(409, "request_in_progress")}
    assert len([answer for answer in made if "idempotency-replayed" not in answer.headers]) == 1
    said = [without_marks(answer) for answer in [*made, ask()]]
    assert all(each == said[0] for each in said)
    assert len(horarium.history("s")) == events
    assert in_order(horarium, "s")
    assert horarium.verify() == []


def without_marks(answer: httpx.Response) -> dict[str, Any]:
    """A repeated answer may say that it is one."""
    return {name: value for name, value in answer.json().items() if name not in ("repeated", "outcome")}


def test_of_eight_who_create_the_same_id_one_does(horarium: TestService) -> None:
    answers = at_once([lambda: horarium.http().post("/api/schedules", json=HOURLY)] * THREADS)
    assert Counter(answer.status_code for answer in answers) == {201: 1, 409: THREADS - 1}
    assert sequences(horarium, "s") == [1]


def test_of_eight_upserts_one_creates_and_none_fails(horarium: TestService) -> None:
    answers = at_once([lambda: horarium.http().post("/api/schedules/upsert", json=HOURLY)] * THREADS)
    assert Counter(answer.json()["outcome"] for answer in answers) == {"created": 1, "unchanged": THREADS - 1}


def test_a_run_is_given_to_one_of_eight_workers(horarium: TestService) -> None:
    horarium.create({**HOURLY, "task_queue": "q", "overlap_policy": "allow_all"})
    http = horarium.http()
    for _ in range(3):
        http.post("/api/schedules/s/trigger", json={})
    horarium.settle()
    answers = at_once([lambda: horarium.http().post("/api/queues/q/claim", json={"limit": 2})] * THREADS)
    taken = [run["run_id"] for answer in answers for run in answer.json()["runs"]]
    assert {answer.status_code for answer in answers} == {200}
    assert (len(taken), len(set(taken))) == (3, 3)


# ── storms ───────────────────────────────────────────────────────────────────────────────────────────


def storm(horarium: TestService, rounds: int) -> Iterator[Callable[[], httpx.Response | None]]:
    """What many hands may do to one schedule: the same id is deleted and made again all the time."""
    http, path = horarium.http(), "/api/schedules/s"
    for number in range(rounds):
        yield lambda: http.post(f"{path}/trigger", json={"overlap_policy": "allow_all"})
        yield lambda: http.post(f"{path}/pause", json={"note": "storm"})
        yield lambda n=number: http.patch(path, json={"note": f"note {n}"})
        yield lambda n=number: http.patch(path, json={"cron_expressions": [f"{n} * * * *"]})
        yield lambda: http.post(f"{path}/resume", json={})
        yield lambda: http.get(path)
        yield lambda: http.post(f"{path}/backfill", json={"from": "2026-02-20T00:00:00Z", "to": "2026-02-20T02:00:00Z"})
        yield lambda: http.delete(path)
        yield lambda: http.post("/api/schedules/upsert", json=HOURLY)
        yield lambda: tick(horarium)


def tick(horarium: TestService) -> None:
    horarium.clock.advance(60)
    horarium.parts.engine.ticker.step()


def test_a_storm_leaves_a_history_without_a_gap(horarium: TestService) -> None:
    horarium.create(HOURLY)
    answers = [answer for answer in at_once(list(storm(horarium, 8))) if answer is not None]
    assert {answer.status_code for answer in answers} <= {200, 201, 404, 409}
    refused = {answer.json()["reason"] for answer in answers if answer.status_code == 409}
    assert refused <= {"conflict"}
    horarium.settle()
    assert horarium.verify() == []
    streams = sequences_by_schedule(horarium)
    assert len(streams) > 1
    assert all(found == list(range(1, len(found) + 1)) for found in streams)


def sequences_by_schedule(horarium: TestService) -> list[list[int]]:
    """Of every schedule that ever had the id."""
    numbered = history.c.sequence.is_not(None)
    numbers = sa.select(history.c.schedule_uid, history.c.sequence).where(numbered).order_by(history.c.sequence)
    rows = horarium.resources.database.read(lambda connection: connection.execute(numbers).all())
    streams: defaultdict[bytes, list[int]] = defaultdict(list)
    for uid, sequence in rows:
        streams[bytes(uid)].append(sequence)
    return list(streams.values())


# ── answers that break ───────────────────────────────────────────────────────────────────────────────


def broken(*_args: object, **_named: object) -> Any:
    raise ZeroDivisionError("the answer cannot be made")


# A request, and what makes its answer after everything was written.
AFTER_COMMIT: dict[str, tuple[str, str, dict[str, Any] | None, Any, str]] = {
    "create": ("POST", "/api/schedules", {**HOURLY, "schedule_id": "t"}, views, "write_result"),
    "upsert": ("POST", "/api/schedules/upsert", {**HOURLY, "schedule_id": "t"}, views, "write_result"),
    "patch": ("PATCH", "/api/schedules/s", {"note": "new"}, schedule_routes, "etag"),
    "pause": ("POST", "/api/schedules/s/pause", {}, views, "write_result"),
    "delete": ("DELETE", "/api/schedules/s", None, views, "write_result"),
    "trigger": ("POST", "/api/schedules/s/trigger", {}, trigger_routes, "Triggered"),
    "backfill": (
        "POST",
        "/api/schedules/s/backfill",
        {"from": "2026-02-20T00:00:00Z", "to": "2026-02-20T02:00:00Z"},
        trigger_routes,
        "_filled",
    ),
    "calendar": ("POST", "/api/calendars", {"name": "ours", "kind": "skip_dates"}, calendar_routes, "_shown"),
    "claim": ("POST", "/api/queues/q/claim", {}, run_routes, "claimed"),
}


def breaks(monkeypatch: pytest.MonkeyPatch, what: str) -> tuple[str, str, dict[str, Any] | None]:
    method, path, body, module, name = AFTER_COMMIT[what]
    assert callable(getattr(module, name))
    monkeypatch.setattr(module, name, broken)
    return method, path, body


@pytest.fixture
def waiting(horarium: TestService) -> TestService:
    """A schedule, and a run of it that waits for a worker."""
    horarium.create({**HOURLY, "task_queue": "q", "overlap_policy": "allow_all"})
    horarium.http().post("/api/schedules/s/trigger", json={})
    horarium.settle()
    return horarium


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("what", AFTER_COMMIT)
def test_what_was_done_is_never_told_as_failed(
    waiting: TestService, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A client repeats what failed with a 5xx, and would do it twice."""
    method, path, body = breaks(monkeypatch, what)
    answer = waiting.http().request(method, path, json=body)
    said = answer.json()
    assert (answer.status_code, said["reason"]) == (409, "done_without_answer")
    assert answer.headers["x-request-id"] in said["message"]


@pytest.mark.parametrize("what", sorted(AFTER_COMMIT.keys() - {"claim"}))
def test_with_a_key_an_answer_that_breaks_undoes_what_it_was_about(
    waiting: TestService, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Nothing was kept, so the truth is a 5xx, and asking again is right."""
    http, before = waiting.http(), len(waiting.history("s"))
    with monkeypatch.context() as broken_for_now:
        method, path, body = breaks(broken_for_now, what)
        assert http.request(method, path, json=body, headers={"Idempotency-Key": "k"}).status_code == 500
    assert len(waiting.history("s")) == before
    assert http.request(method, path, json=body, headers={"Idempotency-Key": "k"}).is_success


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_database_that_goes_away_after_the_commit_is_no_503(
    waiting: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = lifecycle.pause

    def pause_and_lose(*args: Any, **named: Any) -> Any:
        pause(*args, **named)
        raise StoreUnavailable("gone")

    monkeypatch.setattr(lifecycle, "pause", pause_and_lose)
    answer = waiting.http().post("/api/schedules/s/pause", json={})
    assert (answer.status_code, answer.json()["reason"]) == (409, "done_without_answer")


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_an_answer_that_breaks_before_anything_was_done_is_our_defect(
    waiting: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    http = waiting.http()
    with monkeypatch.context() as broken_for_now:
        broken_for_now.setattr(views, "described", broken)
        assert http.get("/api/schedules/s").status_code == 500
        broken_for_now.setattr(lifecycle, "pause", broken)
        assert http.post("/api/schedules/s/pause", json={}).status_code == 500
    assert http.get("/api/schedules/s").status_code == 200


def test_what_is_deleted_between_the_look_and_the_lock_is_made_anew(
    http: httpx.Client, horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    http.post("/api/schedules", json=HOURLY)
    find = schedule_rows.find
    seen = [horarium.resources.database.read(lambda connection: find(connection, "default", "s"))]

    def looked(connection: Any, namespace: str, schedule_id: str, *, lock: bool = False) -> Any:
        return seen.pop() if seen and not lock else find(connection, namespace, schedule_id, lock=lock)

    assert http.delete("/api/schedules/s").status_code == 200
    monkeypatch.setattr(schedule_rows, "find", looked)
    answer = http.post("/api/schedules/upsert", json=HOURLY)
    assert (answer.status_code, answer.json()["outcome"], seen) == (201, "created", [])
