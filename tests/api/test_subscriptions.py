"""Whoever subscribes is told: signed, in order, at least once, and what cannot be delivered is kept."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, SupportsIndex

import httpx
import pytest
import sqlalchemy as sa
from client.any_worker import until
from standardwebhooks import Webhook
from structlog.testing import capture_logs

from horarium.core.decision.record import NewEvent
from horarium.core.document.states import EventType
from horarium.engine.deliverer import Deliverer, DelivererOptions
from horarium.features.history.rows import append as append_history
from horarium.features.webhooks import delivery_rows
from horarium.features.webhooks.rows import SubscriptionRow
from horarium.launchers.ssrf import AddressGuard, AddressPolicy
from horarium.launchers.webhook import WebhookSender
from horarium.platform.database import Connection
from horarium.platform.database.errors import StoreUnavailable
from horarium.platform.database.tables import dead_letters, history, schedules, subscriptions
from horarium.platform.ids import new_id
from horarium.testing import TestService, service

SECRET = f"whsec_{base64.b64encode(b'0123456789abcdef01234567').decode()}"


@dataclass
class Receiver:
    """`answers` are the first statuses, then 204. A closed `gate` keeps answers back, but for `/free`."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    heard: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    connections: list[object] = field(default_factory=list)
    hangs_up_after: set[int] = field(default_factory=set)

    def events(self) -> list[dict[str, Any]]:
        """Of everything that was heard, with the signature checked."""
        for headers, body in self.heard:
            signed = {name: headers[name] for name in ("webhook-id", "webhook-timestamp", "webhook-signature")}
            moment = datetime.fromtimestamp(int(signed["webhook-timestamp"]), UTC)
            expected = Webhook(SECRET).sign(signed["webhook-id"], moment, body.decode())
            assert expected == signed["webhook-signature"]
        return [json.loads(body) for _, body in self.heard]

    def kinds(self) -> list[tuple[str, str | None]]:
        return [(each["data"]["kind"], each["data"]["schedule_id"]) for each in self.events()]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    found.gate.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found.heard.append(({name.lower(): value for name, value in self.headers.items()}, body))
            if not self.path.endswith("/free"):
                found.gate.wait(60)
            self.send_response(found.answers.pop(0) if found.answers else 204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield found
    found.gate.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def keeping() -> Iterator[Receiver]:
    """A receiver that keeps connections, as servers of HTTP/1.1 do."""
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            found.connections.append(self.client_address)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found.heard.append(({}, body))
            self.send_response(found.answers.pop(0) if found.answers else 204)
            self.send_header("content-length", "0")
            self.end_headers()
            # Without a word to the client, as a server that is tired of a connection.
            self.close_connection = len(found.heard) in found.hangs_up_after

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield found
    server.shutdown()
    server.server_close()


def subscribe(http: httpx.Client, url: str, name: str = "hook", **fields: Any) -> dict[str, Any]:
    body = {"name": name, "kinds": ["run_finished"], "url": url, "secret": SECRET, **fields}
    answer = http.post("/api/subscriptions", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def show(http: httpx.Client, name: str = "hook") -> dict[str, Any]:
    found: dict[str, Any] = http.get(f"/api/subscriptions/{name}").json()
    return found


def run(work: Callable[[Deliverer], Coroutine[Any, Any, Any]], horarium: TestService, **options: Any) -> Any:
    """A deliverer of one's own, in a loop of its own, as another process would have."""
    sender = WebhookSender(horarium.clock, AddressGuard(AddressPolicy(allow_loopback=True)), timeout_seconds=60)
    sealer = horarium.resources.sealer
    assert sealer is not None
    deliverer = Deliverer(horarium.resources.database, horarium.clock, sender, sealer, DelivererOptions(**options))

    async def inside() -> Any:
        try:
            return await work(deliverer)
        finally:
            await deliverer.stop()

    try:
        return asyncio.run(inside())
    finally:
        deliverer.close()


async def once(deliverer: Deliverer) -> None:
    await deliverer.step()
    await deliverer.settle()


def deliver_until(horarium: TestService, done: Callable[[], bool], **options: Any) -> None:
    """On PostgreSQL a transaction anywhere on the server, such as another test's, holds the feed back for a while."""

    async def work(deliverer: Deliverer) -> None:
        deadline = time.monotonic() + 60
        while not done() and time.monotonic() < deadline:
            await once(deliverer)
            await asyncio.sleep(0.01)

    run(work, horarium, **options)
    assert done()


def fail_one(horarium: TestService, schedule_id: str = "s", **fields: Any) -> None:
    """One run that ends as failed."""
    if not any(each.schedule_id == schedule_id for each in horarium.runs()):
        usual = {"cron_expressions": ["0 0 1 1 *"], "workflow_type": "w", "overlap_policy": "allow_all"}
        horarium.create(schedule_id=schedule_id, **{**usual, **fields})
    horarium.http().post(f"/api/schedules/{schedule_id}/trigger")
    horarium.settle()
    horarium.fail(horarium.runs(schedule_id)[-1], "no route", error_class="its own")


# ── telling ──────────────────────────────────────────────────────────────────────────────────────────


def test_what_happens_from_now_on_is_told_in_order_and_signed(
    http: httpx.Client, horarium: TestService, receiver: Receiver
) -> None:
    fail_one(horarium, "before")
    # A subscription begins where the feed ends. On PostgreSQL a transaction anywhere on the server holds that back.
    until(lambda: "run_finished" in [entry["kind"] for entry in http.get("/api/feed").json()["entries"]])
    subscribe(http, receiver.url, filter={"states": ["failed"]})
    for name in ("a", "b", "a"):
        fail_one(horarium, name)
    deliver_until(horarium, lambda: show(http)["delivered_count"] >= 3)
    assert receiver.kinds() == [("run_finished", "a"), ("run_finished", "b"), ("run_finished", "a")]
    headers, event = receiver.heard[0][0], receiver.events()[0]
    assert (headers["content-type"], headers["webhook-id"]) == (
        "application/cloudevents+json",
        f"{show(http)['subscription_id']}:{event['id']}",
    )
    assert (event["type"], event["subject"]) == ("dev.horarium.feed.run_finished.v1", "default/a")
    assert (event["data"]["state"], event["data"]["error"]) == ("failed", "no route")
    assert event["data"] in http.get("/api/feed", params={"page_size": 200}).json()["entries"]


def test_a_fault_while_a_lease_is_given_back_holds_up_nothing_until_the_lease_ends(
    http: httpx.Client, horarium: TestService, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock stands still here: a lease that is not given back would last for ever."""
    subscribe(http, receiver.url)
    give_back, failures = delivery_rows.give_back, list[int]()

    def fails_at_first(connection: Connection, row: SubscriptionRow) -> None:
        if len(failures) < 2:
            failures.append(1)
            raise StoreUnavailable("the database is in trouble")
        give_back(connection, row)

    async def work(deliverer: Deliverer) -> None:
        async with asyncio.timeout(120):
            while show(http)["delivered_count"] < 2:
                with suppress(StoreUnavailable):
                    await once(deliverer)
                if show(http)["delivered_count"] == 1 and len(receiver.heard) == 1:
                    fail_one(horarium, "b")
                await asyncio.sleep(0.01)

    fail_one(horarium, "a")
    monkeypatch.setattr(delivery_rows, "give_back", fails_at_first)
    run(work, horarium)
    assert (receiver.kinds()[:2], len(failures)) == ([("run_finished", "a"), ("run_finished", "b")], 2)


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_deliverer_that_stops_records_what_it_delivered(
    http: httpx.Client, horarium: TestService, receiver: Receiver
) -> None:
    class OneAnswer(list[int]):
        """The second request finds the gate closed."""

        def pop(self, *place: SupportsIndex) -> int:
            receiver.gate.clear()
            return super().pop(*place)

    receiver.answers = OneAnswer([204])
    subscribe(http, receiver.url)
    for name in ("a", "b"):
        fail_one(horarium, name)

    async def work(deliverer: Deliverer) -> None:
        async with asyncio.timeout(60):
            while len(receiver.heard) < 2:
                await deliverer.step()
                await asyncio.sleep(0.01)

    run(work, horarium)
    assert show(http)["delivered_count"] == 1


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_process_that_lost_its_lease_neither_keeps_nor_moves_the_subscription(
    http: httpx.Client, horarium: TestService, receiver: Receiver
) -> None:
    subscribe(http, receiver.url)
    write = horarium.resources.database.write
    [row] = write(lambda c: delivery_rows.due(c, horarium.now, after=b"", limit=9))
    first = write(lambda c: delivery_rows.take(c, row.subscription_id, horarium.now))
    horarium.clock.advance(delivery_rows.LEASE_SECONDS)
    second = write(lambda c: delivery_rows.take(c, row.subscription_id, horarium.now))
    assert first is not None
    assert second is not None
    assert not write(lambda c: delivery_rows.renew(c, first, horarium.now))
    assert not write(lambda c: delivery_rows.move(c, first, first.cursor, horarium.now))
    assert write(lambda c: delivery_rows.renew(c, second, horarium.now))


def test_what_was_deleted_before_the_cursor_costs_no_entry_after_it(
    http: httpx.Client, horarium: TestService, receiver: Receiver
) -> None:
    """The newest rows of the feed go with their namespace: their numbers must not be given to others."""
    http.post("/api/namespaces", json={"namespace": "tenant"})
    document = {"schedule_id": "theirs", "cron_expr": "0 0 1 1 *", "workflow_type": "w"}
    assert horarium.http(namespace="tenant").post("/api/schedules", json=document).status_code == 201
    subscribe(http, receiver.url, kinds=["schedule_created"])
    assert http.delete("/api/namespaces/tenant", params={"force": "true"}).json()["outcome"] == "deleted"
    horarium.create(schedule_id="ours", cron_expr="0 0 1 1 *", workflow_type="w")
    deliver_until(horarium, lambda: receiver.kinds() == [("schedule_created", "ours")])


def test_only_what_passes_the_filter_is_told(http: httpx.Client, horarium: TestService, receiver: Receiver) -> None:
    subscribe(http, receiver.url, "one", filter={"schedule_id": "b"})
    subscribe(http, receiver.url, "labelled", kinds=["schedule_created"], filter={"labels": {"team": "x"}})
    fail_one(horarium, "a", labels={"team": "x"})
    fail_one(horarium, "b", labels={"team": "y"})

    def settled() -> bool:
        return all(show(http, name)["delivered_count"] >= 1 for name in ("one", "labelled"))

    deliver_until(horarium, settled)
    assert sorted(receiver.kinds()) == [("run_finished", "b"), ("schedule_created", "a")]


def test_an_entry_is_tried_again_after_growing_pauses_and_those_after_it_wait(
    http: httpx.Client, horarium: TestService, receiver: Receiver
) -> None:
    receiver.answers = [500, 302]
    subscribe(http, receiver.url)
    for name in ("a", "b"):
        fail_one(horarium, name)
    deliver_until(horarium, lambda: show(http)["failures"] == 1, pauses=(5, 30))
    found = show(http)
    assert (found["last_error"], found["retry_at"]) == ("HTTP 500", "2026-03-01T00:00:05Z")
    run(once, horarium, pauses=(5, 30))
    assert len(receiver.heard) == 1, "it pauses"
    horarium.clock.advance(5)
    deliver_until(horarium, lambda: show(http)["failures"] == 2, pauses=(5, 30))
    assert (show(http)["retry_at"], show(http)["last_error"]) == (
        "2026-03-01T00:00:35Z",
        "HTTP 302: redirects are not followed",
    )
    horarium.clock.advance(30)
    deliver_until(horarium, lambda: show(http)["delivered_count"] == 2, pauses=(5, 30))
    assert [name for _, name in receiver.kinds()] == ["a", "a", "a", "b"]
    assert len({headers["webhook-id"] for headers, _ in receiver.heard[:3]}) == 1
    assert len({body for _, body in receiver.heard[:3]}) == 1


@pytest.mark.both_databases
def test_what_was_given_up_is_listed_and_sent_again_when_somebody_asks(
    http: httpx.Client, horarium: TestService, receiver: Receiver
) -> None:
    receiver.answers = [500, 503, 500]
    subscribe(http, receiver.url)
    fail_one(horarium, "a")
    deliver_until(horarium, lambda: show(http)["failures"] == 1, pauses=(0,))
    with capture_logs() as told:
        deliver_until(horarium, lambda: show(http)["dead_letters"] == 1, pauses=(0,))
    (given_up,) = (each for each in told if each["event"] == "delivery_dead_lettered")
    about = {"namespace": "default", "schedule_id": "a", "run_id": horarium.runs("a")[0].run_id, "subscription": "hook"}
    assert given_up.items() >= about.items()
    [letter] = http.get("/api/subscriptions/hook/dead-letters").json()["dead_letters"]
    assert (letter["status"], letter["attempts"], letter["kind"]) == (503, 2, "run_finished")
    assert letter["body"] == receiver.events()[0]
    fail_one(horarium, "b")
    assert http.post("/api/subscriptions/hook/redeliver").json()["count"] == 1
    deliver_until(horarium, lambda: show(http)["delivered_count"] == 1, pauses=(0,))
    assert http.get("/api/subscriptions/hook/dead-letters").json()["dead_letters"][0]["attempts"] == 3
    again = {"ids": [letter["dead_letter_id"]]}
    assert http.post("/api/subscriptions/hook/redeliver", json=again).json()["outcome"] == "queued"
    deliver_until(horarium, lambda: show(http)["dead_letters"] == 0, pauses=(0,))
    assert [name for _, name in receiver.kinds()] == ["a", "a", "a", "b", "a"]


def test_a_receiver_that_hangs_delays_nobody_and_two_processes_tell_nothing_twice(
    http: httpx.Client, horarium: TestService, receiver: Receiver
) -> None:
    """A second process finds the lease taken; and whoever else has subscribed is told meanwhile."""
    receiver.gate.clear()
    subscribe(http, receiver.url, "hangs")
    subscribe(http, f"{receiver.url}/free", "free")
    fail_one(horarium, "a")

    async def work(first: Deliverer) -> None:
        deadline = time.monotonic() + 60
        while len(receiver.heard) < 2 and time.monotonic() < deadline:
            await first.step()
            await asyncio.sleep(0.01)
        while show(http, "free")["delivered_count"] < 1 and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        assert (show(http, "free")["delivered_count"], show(http, "hangs")["delivered_count"]) == (1, 0)
        await asyncio.to_thread(run, once, horarium)
        assert len(receiver.heard) == 2, "one process at a time delivers for a subscription"
        receiver.gate.set()
        await first.settle()

    run(work, horarium)
    assert (show(http, "hangs")["delivered_count"], len(receiver.heard)) == (1, 2)


def test_many_receivers_that_hang_leave_a_place_for_another_tenant(
    http: httpx.Client, horarium: TestService, receiver: Receiver
) -> None:
    receiver.gate.clear()
    for number in range(4):
        subscribe(http, receiver.url, f"hangs-{number}", kinds=["schedule_created"])
    http.post("/api/namespaces", json={"namespace": "other"})
    there = horarium.http(namespace="other")
    subscribe(there, f"{receiver.url}/free", "free", kinds=["schedule_created"])
    for each in (http, there):
        each.post("/api/schedules", json={"schedule_id": "s", "cron_expr": "0 0 1 1 *", "workflow_type": "w"})

    async def work(deliverer: Deliverer) -> None:
        deadline = time.monotonic() + 60
        while show(there, "free")["delivered_count"] < 1 and time.monotonic() < deadline:
            await deliverer.step()
            await asyncio.sleep(0.01)
        told = show(there, "free")["delivered_count"]
        receiver.gate.set()
        await deliverer.settle()
        assert told == 1, "it was told while all the others hung"

    run(work, horarium, places=4, places_of_one=4)


@pytest.mark.both_databases
def test_the_labels_of_a_schedule_that_is_deleted_still_count(
    http: httpx.Client, horarium: TestService, receiver: Receiver
) -> None:
    kinds = ["run_finished", "schedule_deleted"]
    subscribe(http, receiver.url, kinds=kinds, filter={"labels": {"team": "a"}})
    for name in "ba":
        fail_one(horarium, name, labels={"team": name})
        assert http.delete(f"/api/schedules/{name}").status_code == 200
    deliver_until(horarium, lambda: show(http)["delivered_count"] == 2)
    assert sorted(receiver.kinds()) == [("run_finished", "a"), ("schedule_deleted", "a")]


@pytest.mark.both_databases
def test_what_is_sent_again_stops_when_the_subscription_is_gone(
    http: httpx.Client, horarium: TestService, receiver: Receiver
) -> None:
    receiver.answers = [500, 500]
    subscribe(http, receiver.url)
    fail_one(horarium, "a")
    fail_one(horarium, "a")
    deliver_until(horarium, lambda: show(http)["dead_letters"] == 2, pauses=())
    assert http.post("/api/subscriptions/hook/redeliver").json()["count"] == 2
    receiver.gate.clear()

    async def work(deliverer: Deliverer) -> None:
        deadline = time.monotonic() + 60
        while len(receiver.heard) < 3 and time.monotonic() < deadline:
            await deliverer.step()
            await asyncio.sleep(0.01)
        assert http.delete("/api/subscriptions/hook").status_code == 200
        receiver.gate.set()
        await deliverer.settle()

    run(work, horarium)
    assert len(receiver.heard) == 3, "the one that was under way, and none after it"


@pytest.mark.both_databases
def test_a_dead_letter_that_cannot_be_read_keeps_no_other_from_being_sent_again(
    http: httpx.Client, horarium: TestService, receiver: Receiver
) -> None:
    receiver.answers = [500, 500]
    subscribe(http, receiver.url)
    for name in ("a", "b"):
        fail_one(horarium, name)
    deliver_until(horarium, lambda: show(http)["dead_letters"] == 2, pauses=())
    assert http.post("/api/subscriptions/hook/redeliver").json()["count"] == 2
    oldest = sa.select(sa.func.min(dead_letters.c.entry)).scalar_subquery()
    change(horarium, sa.update(dead_letters).where(dead_letters.c.entry == oldest).values(failed_at=2**61))
    fail_one(horarium, "c")
    deliver_until(horarium, lambda: show(http)["delivered_count"] == 1)
    assert (show(http)["dead_letters"], len(receiver.heard)) == (1, 4)
    (left,) = http.get("/api/subscriptions/hook/dead-letters").json()["dead_letters"]
    assert (left["unreadable"], left["detail"].startswith("failed_at: ")) == (True, True)


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.both_databases
def test_no_answer_and_no_row_shows_the_secret(http: httpx.Client, horarium: TestService) -> None:
    made = subscribe(http, "https://ops.example.com/hook")
    answers = [made, http.get("/api/subscriptions").json(), show(http)]
    answers.append(http.put("/api/subscriptions/hook", json={"secret": SECRET, "kinds": ["schedule_health"]}).json())
    assert all(SECRET.removeprefix("whsec_") not in json.dumps(each) for each in answers)
    assert (answers[-1]["version"], answers[-1]["kinds"]) == (2, ["schedule_health"])

    def stored(connection: Any) -> str:
        return str(connection.exec_driver_sql("SELECT * FROM subscriptions").all())

    assert SECRET.removeprefix("whsec_") not in horarium.resources.database.read(stored)


def test_a_test_message_says_what_the_receiver_answered(service_url: str, receiver: Receiver) -> None:
    with service(database=service_url, settings={"allow_loopback_targets": True}) as opened:
        http = opened.http()
        subscribe(http, receiver.url)
        receiver.answers = [204, 410]
        assert http.post("/api/subscriptions/hook/test").json()["delivered"] is True
        refused = http.post("/api/subscriptions/hook/test").json()
    assert (refused["delivered"], refused["status"], refused["error"]) == (False, 410, "HTTP 410")
    assert receiver.kinds() == [("test", None), ("test", None)]


def test_a_subscription_does_not_reach_this_machine_unless_the_operator_opens_it(
    http: httpx.Client, receiver: Receiver
) -> None:
    subscribe(http, receiver.url)
    told = http.post("/api/subscriptions/hook/test").json()
    assert (told["delivered"], told["status"], receiver.heard) == (False, None, [])
    assert "a loopback address" in told["error"]


BAD: dict[str, tuple[dict[str, Any], set[str]]] = {
    "everything": (
        {"kinds": ["x"], "url": "ftp://x", "secret": "short", "name": "a b"},
        {"kinds", "url", "secret", "name"},
    ),
    "nothing": ({"kinds": None, "url": None, "secret": None}, {"kinds", "url", "secret"}),
    "an unknown field": ({"kind": "x"}, {"kind"}),
    "no base64": ({"secret": "whsec_!!!!!!!!!!!!!!!!!!!!!!!!!!!!"}, {"secret"}),
    "credentials": ({"url": "https://a:b@example.com/"}, {"url"}),
}


@pytest.mark.parametrize(("fields", "wrong"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_named(http: httpx.Client, fields: dict[str, Any], wrong: set[str]) -> None:
    body = {"kinds": ["run_finished"], "url": "https://ops.example.com/", "secret": SECRET, **fields}
    answer = http.post("/api/subscriptions", json=body)
    assert (answer.status_code, set(answer.json()["errors"])) == (422, wrong)


def test_a_name_is_taken_once_and_another_tenants_is_not_there(http: httpx.Client, horarium: TestService) -> None:
    made = subscribe(http, "https://ops.example.com/hook")
    body = {"name": "hook", "kinds": ["run_finished"], "url": "https://x.example.com/", "secret": SECRET}
    assert http.post("/api/subscriptions", json=body).json()["reason"] == "subscription_already_exists"
    http.post("/api/namespaces", json={"namespace": "other"})
    there = horarium.http(namespace="other")
    for path in ("", "/dead-letters"):
        for which in ("hook", made["subscription_id"]):
            answer = there.get(f"/api/subscriptions/{which}{path}")
            assert (answer.status_code, answer.json()["reason"]) == (404, "subscription_not_found")
    assert there.delete(f"/api/subscriptions/{made['subscription_id']}").status_code == 404
    assert http.delete("/api/subscriptions/hook").json()["outcome"] == "deleted"
    assert http.get("/api/subscriptions").json()["subscriptions"] == []


# ── what cannot be read ──────────────────────────────────────────────────────────────────────────────


def change(horarium: TestService, statement: sa.Update) -> None:
    horarium.resources.database.write(lambda connection: connection.execute(statement))


@pytest.mark.both_databases
@pytest.mark.parametrize(("column", "text"), [("filter", "[oh"), ("filter", "7"), ("kinds", "[oh"), ("kinds", "{}")])
def test_a_subscription_that_cannot_be_read_is_parked_until_it_is_edited_and_stops_no_other(
    http: httpx.Client, horarium: TestService, receiver: Receiver, column: str, text: str
) -> None:
    subscribe(http, receiver.url, "bad", kinds=["schedule_created"])
    subscribe(http, receiver.url, "good", kinds=["schedule_created"])
    change(horarium, sa.update(subscriptions).where(subscriptions.c.name == "bad").values({column: text}))
    horarium.create(schedule_id="s", cron_expr="0 0 1 1 *", workflow_type="w")
    deliver_until(horarium, lambda: show(http, "good")["delivered_count"] == 1 and "parked_at" in show(http, "bad"))
    bad = {each["name"]: each for each in http.get("/api/subscriptions").json()["subscriptions"]}["bad"]
    assert (bad["broken"].startswith(f"{column}: "), column in bad["last_error"]) == (True, True)
    assert "parked_at" not in show(http, "good")
    checks = {each["name"]: each for each in horarium.http().get("/readyz").json()["checks"]}
    assert (checks["subscriptions"]["passed"], "1" in checks["subscriptions"]["detail"]) == (False, True)
    assert "horarium_subscriptions_parked 1.0" in http.get("/metrics").text
    refused = http.put("/api/subscriptions/bad", json={"url": receiver.url})
    assert (refused.status_code, list(refused.json()["errors"])) == (422, [column])
    mended = {"kinds": ["schedule_created"], "filter": {}}
    assert "parked_at" not in http.put("/api/subscriptions/bad", json=mended).json()
    deliver_until(horarium, lambda: show(http, "bad")["delivered_count"] == 1)
    assert receiver.kinds() == [("schedule_created", "s")] * 2


@pytest.mark.both_databases
def test_a_subscription_whose_times_cannot_be_read_stops_no_other(
    http: httpx.Client, horarium: TestService, receiver: Receiver
) -> None:
    subscribe(http, receiver.url, "bad", kinds=["schedule_created"])
    subscribe(http, receiver.url, "good", kinds=["schedule_created"])
    change(horarium, sa.update(subscriptions).where(subscriptions.c.name == "bad").values(created_at=2**61))
    horarium.create(schedule_id="s", cron_expr="0 0 1 1 *", workflow_type="w")
    deliver_until(horarium, lambda: show(http, "good")["delivered_count"] == 1)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "damage",
    [{"event_type": "from_a_newer_release"}, {"recorded_at": 2**61}, {"payload": '{"occurrence_time": "noon"}'}],
    ids=["an unknown kind", "a time that is none", "a payload that is none"],
)
def test_an_entry_that_cannot_be_read_is_skipped_counted_and_stops_nothing(
    http: httpx.Client, horarium: TestService, receiver: Receiver, damage: dict[str, Any]
) -> None:
    subscribe(http, receiver.url, kinds=["schedule_created"])
    for name in ("a", "b", "c"):
        horarium.create(schedule_id=name, cron_expr="0 0 1 1 *", workflow_type="w")
    second = sa.select(schedules.c.schedule_uid).where(schedules.c.schedule_id == "b").scalar_subquery()
    change(horarium, sa.update(history).where(history.c.schedule_uid == second).values(damage))
    deliver_until(horarium, lambda: show(http)["delivered_count"] == 2)
    assert [name for _, name in receiver.kinds()] == ["a", "c"]
    (entry,) = [each["id"] for each in http.get("/api/feed").json()["entries"] if each.get("unreadable")] or [None]
    assert (show(http)["unreadable_entries"], show(http)["last_unreadable"].startswith(f"{entry}: ")) == (1, True)
    checks = {each["name"]: each for each in horarium.http().get("/readyz").json()["checks"]}
    said = "events not delivered because of them: 1"
    assert (checks["subscriptions"]["passed"], said in checks["subscriptions"]["detail"]) == (True, True)


# ── many ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.both_databases
@pytest.mark.parametrize("many", [600, pytest.param(10_000, marks=pytest.mark.long)])
def test_many_subscriptions_without_news_delay_none_that_has_some(
    http: httpx.Client, horarium: TestService, receiver: Receiver, many: int
) -> None:
    """They are of two tenants; the last of them all is told after a few looks."""
    subscribe(http, receiver.url, "zz-last", kinds=["schedule_created"])

    def copy(connection: sa.Connection) -> None:
        row = dict(connection.execute(sa.select(subscriptions)).mappings().one())
        own = [
            {**row, "subscription_id": number.to_bytes(16, "big"), "name": f"n{number}", "namespace": "other"}
            for number in range(1, many)
        ]
        connection.execute(sa.insert(subscriptions), own)

    horarium.resources.database.write(copy)
    horarium.create(schedule_id="s", cron_expr="0 0 1 1 *", workflow_type="w")
    looks = 0

    async def work(deliverer: Deliverer) -> None:
        nonlocal looks
        while show(http, "zz-last")["delivered_count"] < 1 and looks < 2 + many // 100:
            await once(deliverer)
            looks += 1

    run(work, horarium)
    assert show(http, "zz-last")["delivered_count"] == 1
    assert looks <= 2 + many // 500


@pytest.mark.parametrize("events", [300, pytest.param(5_000, marks=pytest.mark.long)])
def test_many_entries_are_told_in_order_over_one_connection_with_few_writes(
    http: httpx.Client, horarium: TestService, keeping: Receiver, events: int
) -> None:
    subscribe(http, keeping.url, kinds=["schedule_created"])
    uid, now = new_id(), horarium.now
    payload = {"n": 0}
    rows = [NewEvent(n, EventType.CREATED, None, None, None, payload) for n in range(1, events + 1)]
    database = horarium.resources.database
    database.write(lambda connection: append_history(connection, [(uid, "default", rows)], now=now))
    commits: list[object] = []
    sa.event.listen(database.engine, "commit", commits.append)
    keeping.hangs_up_after = {100}
    deliver_until(horarium, lambda: show(http)["delivered_count"] == events)
    assert [json.loads(body)["data"]["sequence"] for _, body in keeping.heard] == list(range(1, events + 1))
    assert len(keeping.connections) <= 3 + events // 2_000
    assert len(commits) < events // 10


def test_a_result_of_a_megabyte_is_kept_shown_and_its_end_told(
    http: httpx.Client, horarium: TestService, receiver: Receiver
) -> None:
    """The lists, the feed and the message stay small; the run itself has it whole."""
    subscribe(http, receiver.url)
    horarium.create(schedule_id="s", cron_expr="0 0 1 1 *", workflow_type="w", overlap_policy="allow_all")
    http.post("/api/schedules/s/trigger").raise_for_status()
    horarium.settle()
    (run,) = horarium.runs("s")
    horarium.finish(run, {"said": "x" * (1_048_576 - 100)})
    deliver_until(horarium, lambda: show(http)["delivered_count"] == 1)
    assert len(http.get(f"/api/runs/{run.run_id}").json()["result"]["said"]) == 1_048_476
    for path in ("/api/runs", "/api/schedules/s/runs", "/api/feed", "/api/schedules/s/history"):
        answer = http.get(path)
        assert (answer.status_code, len(answer.content) < 100_000) == (200, True), path
    assert all(len(body) < 10_000 for _, body in receiver.heard)
    assert http.get("/api/schedules/s").status_code == 200
