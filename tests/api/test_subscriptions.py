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
from typing import Any

import httpx
import pytest
from client.any_worker import until
from standardwebhooks import Webhook

from horarium.engine.deliverer import Deliverer, DelivererOptions
from horarium.launchers.ssrf import AddressPolicy, Guard
from horarium.launchers.webhook import WebhookSender
from horarium.store.database import Connection
from horarium.store.errors import StoreUnavailable
from horarium.store.subscriptions import deliveries
from horarium.store.subscriptions.rows import SubscriptionRow
from horarium.testing import TestService, service

SECRET = f"whsec_{base64.b64encode(b'0123456789abcdef01234567').decode()}"


@dataclass
class Receiver:
    """`answers` are the first statuses, then 204. A closed `gate` keeps answers back, but for `/free`."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    heard: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

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
    sender = WebhookSender(horarium.clock, Guard(AddressPolicy(allow_loopback=True)), timeout_seconds=60)
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
    give_back, failures = deliveries.give_back, list[int]()

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
    monkeypatch.setattr(deliveries, "give_back", fails_at_first)
    run(work, horarium)
    assert (receiver.kinds()[:2], len(failures)) == ([("run_finished", "a"), ("run_finished", "b")], 2)


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


def test_what_was_given_up_is_listed_and_sent_again_when_somebody_asks(
    http: httpx.Client, horarium: TestService, receiver: Receiver
) -> None:
    receiver.answers = [500, 503, 500]
    subscribe(http, receiver.url)
    fail_one(horarium, "a")
    deliver_until(horarium, lambda: show(http)["failures"] == 1, pauses=(0,))
    deliver_until(horarium, lambda: show(http)["dead_letters"] == 1, pauses=(0,))
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


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────


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
    assert http.get("/api/subscriptions").json() == {"subscriptions": []}
