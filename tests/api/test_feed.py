"""The feed, newest first and as a stream; and that a stream skips nothing."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from api.streams import Listener

from horarium.core.document.states import FEED_KINDS, EventType, NoticeType
from horarium.features.history import routes as history_routes
from horarium.features.history import service as history_service
from horarium.features.history import streams
from horarium.features.history.entry_rows import START, FeedCursor, cursor_text
from horarium.features.history.rows import append
from horarium.features.history.service import FeedPage, read_cursor
from horarium.features.resources import Resources
from horarium.platform.caller import Caller
from horarium.platform.database import Database
from horarium.testing import TestService


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (history_routes, streams):
        monkeypatch.setattr(module, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(history_routes, "COMMENT_SECONDS", 0.1)


@pytest.fixture
def hourly(horarium: TestService) -> str:
    return horarium.create(schedule_id="hourly", cron_expressions=["0 * * * *"], workflow_type="sweep")


def entries(http: httpx.Client, **params: Any) -> list[dict[str, Any]]:
    answer = http.get("/api/feed", params=params)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["entries"]
    return found


def settled(http: httpx.Client, count: int) -> list[dict[str, Any]]:
    """On PostgreSQL a transaction anywhere on the server, such as another test's, holds the feed back for a while."""
    deadline = time.monotonic() + 60
    while len(found := entries(http)) < count and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(found) == count
    return found


def test_every_event_has_a_kind() -> None:
    assert set(FEED_KINDS) == {*EventType, *NoticeType}
    # An attempt to get round an approval is one, whether or not a schedule asked for the run.
    assert FEED_KINDS[EventType.APPROVAL_BYPASS_ATTEMPT] == FEED_KINDS[NoticeType.APPROVAL_BYPASS_ATTEMPT]
    assert len(set(FEED_KINDS.values())) == len(FEED_KINDS) - 1


def test_the_newest_entry_comes_first(http: httpx.Client, horarium: TestService, hourly: str) -> None:
    horarium.advance(minutes=61)
    http.post("/api/schedules/hourly/trigger")
    found = settled(http, 3)
    kinds = [(each["kind"], each["schedule_id"], each["reason"]) for each in found]
    assert kinds == [
        ("schedule_skipped", "hourly", "overlap_policy_skip"),
        ("schedule_dispatch", "hourly", None),
        ("schedule_created", "hourly", None),
    ]
    dispatch = found[1]
    assert (dispatch["occurrence_time"], dispatch["at"]) == ("2026-03-01T01:00:00Z", "2026-03-01T01:00:00Z")
    assert http.get(f"/api/runs/{dispatch['run_id']}").status_code == 200


def ends(http: httpx.Client, count: int) -> list[dict[str, Any]]:
    """The `run_finished` of the feed, newest first; as many as are awaited, or more if there are more."""
    deadline = time.monotonic() + 60
    while True:
        found = [each for each in entries(http, page_size=200) if each["kind"] == "run_finished"]
        if len(found) >= count or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


def test_the_end_of_a_run_is_told_with_its_outcome(http: httpx.Client, horarium: TestService, hourly: str) -> None:
    horarium.advance(hours=1)
    run = horarium.runs("hourly")[-1]
    horarium.advance(seconds=90)
    horarium.fail(run, "no route to host\n" * 200, error_class="its own")
    [end] = ends(http, 1)
    error = end["payload"].pop("error")
    assert (end["error"], error.startswith("no route to host"), len(error) <= 1_000) == (error, True, True)
    assert end["payload"] == {
        "state": "failed",
        "error_class": "its own",
        "attempt": 1,
        "origin": "scheduled",
        "occurrence_time": "2026-03-01T01:00:00Z",
        "started_at": "2026-03-01T01:00:00Z",
        "finished_at": "2026-03-01T01:01:30Z",
        "duration_seconds": 90.0,
        "workflow": run.workflow_type,
    }
    assert (end["schedule_id"], end["run_id"], end["state"]) == ("hourly", run.run_id, "failed")
    assert (end["workflow"], "version" in end, "approval" in end) == (run.workflow_type, False, False)
    assert (end["attempt"], end["duration_seconds"], end["at"]) == (1, 90.0, "2026-03-01T01:01:30Z")
    assert (end["event_type"], end["sequence"]) == (None, None)


@pytest.mark.both_databases
def test_whatever_ends_a_run_is_told_and_no_audit_stream_hears_of_it(http: httpx.Client, horarium: TestService) -> None:
    """A report, a deadline, a cancel before the start, a newer occurrence, a delete; and a run of no schedule."""
    usual: dict[str, Any] = {"cron_expressions": ["0 * * * *"], "workflow_type": "sweep"}
    for name, policy in (("reported", "skip"), ("late", "skip"), ("replaced", "terminate_other"), ("gone", "skip")):
        horarium.create(schedule_id=name, overlap_policy=policy, timeout_seconds=600, **usual)
    horarium.create(schedule_id="asked", approval_policy={"requires_approval": True}, **usual)
    horarium.advance(hours=1)
    started = http.post("/api/run-launcher/start", json={"workflow_id": "w", "idempotency_key": "k"}).json()["run_id"]
    horarium.finish(next(run for run in horarium.runs("reported")))
    http.post("/api/schedules/replaced/trigger")
    horarium.advance(minutes=20)
    http.post(f"/api/runs/{started}/terminate")
    for name in ("gone", "asked"):
        http.delete(f"/api/schedules/{name}")
    horarium.settle()
    found = ends(http, 7)
    assert sorted((each["schedule_id"] or "-", each["state"]) for each in found) == [
        ("-", "terminated"),
        ("asked", "cancelled"),
        ("gone", "timed_out"),
        ("late", "timed_out"),
        ("replaced", "terminated"),
        ("replaced", "timed_out"),
        ("reported", "succeeded"),
    ]
    assert len({each["run_id"] for each in found}) == len(found)
    for name in ("reported", "late", "replaced", "gone"):
        events = horarium.history(name)
        assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert horarium.verify() == []


@pytest.mark.both_databases
def test_pages_lead_back_to_the_beginning(http: httpx.Client, horarium: TestService) -> None:
    for number in range(7):
        horarium.create(schedule_id=f"s{number}", cron_expressions=["0 * * * *"], workflow_type="x")
    settled(http, 7)
    names: list[str] = []
    token: str | None = None
    while len(names) < 20:
        params: dict[str, Any] = {"page_size": 3, **({} if token is None else {"next_page_token": token})}
        page = http.get("/api/feed", params=params).json()
        names += [each["schedule_id"] for each in page["entries"]]
        token = page["next_page_token"]
        if token is None:
            break
    assert names == [f"s{number}" for number in reversed(range(7))]


@pytest.mark.both_databases
def test_after_a_cursor_it_goes_forward(http: httpx.Client, horarium: TestService) -> None:
    for number in range(4):
        horarium.create(schedule_id=f"s{number}", cron_expressions=["0 * * * *"], workflow_type="x")
    oldest = settled(http, 4)[-1]
    forward = entries(http, after=oldest["id"], page_size=2)
    assert [each["schedule_id"] for each in forward] == ["s1", "s2"]
    assert [each["schedule_id"] for each in entries(http, after=forward[-1]["id"])] == ["s3"]
    assert entries(http, after=entries(http)[0]["id"]) == []
    assert len(entries(http, after="0-0")) == 4


def test_a_deleted_schedule_keeps_its_name(http: httpx.Client, hourly: str) -> None:
    http.delete("/api/schedules/hourly")
    assert [each["schedule_id"] for each in settled(http, 2)] == ["hourly", "hourly"]


BAD_CURSORS: list[dict[str, Any]] = [
    {"after": "x"},
    {"after": "1-"},
    {"next_page_token": "-1-5"},
    {"after": f"{9**40}-1"},
    {"after": "1-2-"},
    {"after": "1-2-3-4"},
    {"after": "1-2-" + "a" * 21},
    {"after": "1-2-É"},
    {"page_size": 201},
]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_bad_cursor_is_refused(http: httpx.Client) -> None:
    for params in BAD_CURSORS:
        assert http.get("/api/feed", params=params).status_code == 422, params


@pytest.mark.parametrize("cursor", [FeedCursor(714, 20), FeedCursor(714, 20, "12.9f3c07ab"), START], ids=str)
def test_a_cursor_is_text_that_can_be_read_again(cursor: FeedCursor) -> None:
    assert read_cursor(cursor_text(cursor), "after") == cursor


# ── the stream ───────────────────────────────────────────────────────────────────────────────────────


def names(listener: Listener) -> list[str]:
    return [json.loads(each["data"])["schedule_id"] for each in listener.heard]


def make(horarium: TestService, *wanted: str) -> None:
    for name in wanted:
        horarium.create(schedule_id=name, cron_expressions=["0 * * * *"], workflow_type="x")


def test_a_stream_tells_what_comes_from_now_on(http: httpx.Client, horarium: TestService) -> None:
    make(horarium, "before")
    settled(http, 1)
    listener = Listener(horarium.parts.api)
    listener.listen(lambda me: len(me.heard) >= 2, lambda: make(horarium, "one", "two"))
    assert names(listener) == ["one", "two"]
    assert [each["event"] for each in listener.heard] == ["schedule_created", "schedule_created"]
    assert [each["id"] for each in listener.heard] == [json.loads(each["data"])["id"] for each in listener.heard]


@pytest.mark.parametrize("how", ["header", "query"])
def test_who_was_cut_off_goes_on_where_he_was(horarium: TestService, how: str) -> None:
    make(horarium, "one", "two", "three")
    first = Listener(horarium.parts.api, query="after=0-0").listen(lambda me: len(me.heard) >= 1)
    seen = first.heard[0]["id"]
    headers, query = ({"last-event-id": seen}, "") if how == "header" else ({}, f"after={seen}")
    again = Listener(horarium.parts.api, headers=headers, query=query)
    again.listen(lambda me: len(me.heard) >= 3, lambda: make(horarium, "four"))
    assert names(again) == ["two", "three", "four"]


def test_who_was_cut_off_before_the_first_event_misses_nothing(http: httpx.Client, horarium: TestService) -> None:
    make(horarium, "before")
    settled(http, 1)
    first = Listener(horarium.parts.api).listen(lambda me: bool(me.last_id))
    make(horarium, "meanwhile")
    again = Listener(horarium.parts.api, headers={"last-event-id": first.last_id}).listen(lambda me: bool(me.heard))
    assert (first.heard, names(again)) == ([], ["meanwhile"])


@pytest.mark.both_databases
def test_more_than_a_page_is_told_in_order(horarium: TestService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_PAGE", 3)
    wanted = [f"s{number:02}" for number in range(10)]
    make(horarium, *wanted)
    listener = Listener(horarium.parts.api, query="after=0-0").listen(lambda me: len(me.heard) >= 10)
    assert names(listener) == wanted


def test_a_silent_stream_says_that_it_is_still_there(horarium: TestService) -> None:
    listener = Listener(horarium.parts.api).listen(lambda me: me.comments >= 2)
    assert listener.heard == []


def test_a_stream_ends_when_the_service_stops(horarium: TestService) -> None:
    assert Listener(horarium.parts.api).listen(lambda _me: False, horarium.parts.api.state.closing.set).ended


def test_a_stream_tells_of_its_own_namespace_only(http: httpx.Client, horarium: TestService) -> None:
    http.post("/api/namespaces", json={"namespace": "tenant"})

    def both() -> None:
        make(horarium, "mine")
        body = {"schedule_id": "theirs", "cron_expressions": ["0 * * * *"], "workflow_type": "x"}
        assert horarium.http(namespace="tenant").post("/api/schedules", json=body).status_code == 201

    listener = Listener(horarium.parts.api, headers={"x-namespace": "tenant"})
    listener.listen(lambda me: len(me.heard) >= 1, both)
    assert names(listener) == ["theirs"]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_bad_place_is_refused_before_the_stream_begins(http: httpx.Client) -> None:
    answer = http.get("/api/events", headers={"Last-Event-ID": "yesterday"})
    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["Last-Event-ID"])


@pytest.fixture
def latecomer(open_another: Callable[[], Database]) -> Callable[[Callable[[], None]], None]:
    """Writes an event, lets others go first, and commits then."""
    other = open_another()

    def late(meanwhile: Callable[[], None]) -> None:
        written, go = threading.Event(), threading.Event()

        def work(connection: Any) -> None:
            from horarium.core.decision.record import NewEvent

            event = NewEvent(1, EventType.PAUSED, None, None, None, {"reason": "late"})
            append(connection, [(b"l" * 16, "default", [event])], now=0)
            written.set()
            assert go.wait(60)

        thread = threading.Thread(target=other.write, args=(work,))
        thread.start()
        assert written.wait(60)
        try:
            meanwhile()
        finally:
            go.set()
            thread.join()

    return late


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_what_commits_late_is_not_skipped(
    http: httpx.Client, horarium: TestService, latecomer: Callable[[Callable[[], None]], None]
) -> None:
    """Its number is lower than that of what is there already; whoever began before or meanwhile still hears of it."""
    shown: list[list[dict[str, Any]]] = []

    def meanwhile() -> None:
        make(horarium, "early")
        shown.append(entries(http))

    listener = Listener(horarium.parts.api)
    listener.listen(lambda me: len(me.heard) >= 2, lambda: latecomer(meanwhile))
    assert shown == [[]], "nothing is shown that something may still come before"
    assert sorted(each["event"] for each in listener.heard) == ["schedule_created", "schedule_paused"]
    settled(http, 2)


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_a_stream_that_begins_while_something_commits_hears_of_it(
    horarium: TestService, latecomer: Callable[[Callable[[], None]], None]
) -> None:
    listener = Listener(horarium.parts.api)
    heard: list[threading.Thread] = []

    def begin() -> None:
        opened = threading.Event()
        stream = threading.Thread(target=listener.listen, args=(lambda me: len(me.heard) >= 1, opened.set))
        stream.start()
        assert opened.wait(60)
        heard.append(stream)

    latecomer(begin)
    heard[0].join(60)
    assert [each["event"] for each in listener.heard] == ["schedule_paused"]


@pytest.mark.both_databases
def test_no_connection_is_held_between_two_looks(horarium: TestService) -> None:
    """More streams than the pool has connections, all open at once, and as many as one token may have."""
    many = 20
    listeners = [Listener(horarium.parts.api) for _ in range(many)]
    opened = threading.Barrier(many + 1, timeout=120)

    def run(listener: Listener) -> None:
        listener.listen(lambda me: len(me.heard) >= 1, opened.wait)

    threads = [threading.Thread(target=run, args=(each,)) for each in listeners]
    for thread in threads:
        thread.start()
    opened.wait()
    make(horarium, "one")
    for thread in threads:
        thread.join(60)
    assert [names(each) for each in listeners] == [["one"]] * many


def test_a_page_is_read_once_for_all_streams(horarium: TestService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens many streams would else have everything read and written out as often."""
    make(horarium, *(f"s{number}" for number in range(10)))
    settled(horarium.http(), 10)
    looked: list[str] = []
    onward = history_service.onward

    def counted(resources: Resources, caller: Caller, after: FeedCursor, *, page_size: int | None = None) -> FeedPage:
        looked.append(cursor_text(after))
        return onward(resources, caller, after, page_size=page_size)

    monkeypatch.setattr(history_service, "onward", counted)
    begin = FeedCursor()

    async def follow() -> list[bytes]:
        found = await asyncio.gather(*(pages.after(horarium.resources, horarium.caller, begin) for _ in range(20)))
        return [b"".join(page.pieces) for page in found]

    pages = streams.FeedPages()
    texts = asyncio.run(follow())
    assert looked == [cursor_text(begin)]
    assert len(set(texts)) == 1
    assert texts[0].count(b"data: ") == 10


def test_pages_that_are_kept_are_bounded(horarium: TestService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_KEPT_PAGES", 3)
    pages = streams._Pages()
    for number in range(10):
        pages._keep(("default", str(number)), streams.StreamPage((b"x" * number,), START, 0.0))
    assert len(pages._kept) == 3
    assert pages._bytes == 7 + 8 + 9
