"""Those who use the house while it is hurt: people who edit and fire schedules, a worker of a queue, and reporters.

Each asks whichever server lives, notes what it was answered, and goes on.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from acceptance.chaos_house import TOKEN
from acceptance.chaos_target import Target

QUEUE = "chaos"
PULLED_ONCE = "pulled-once"
EVERY_SECOND = "* * * * * *"
# Not due while the test lasts, unless somebody runs it at New Year.
ONCE_A_YEAR = "0 0 1 1 *"
_PATIENCE_SECONDS = 10.0
_OVERLAPS = ("skip", "buffer_one", "buffer_all", "allow_all", "cancel_other", "terminate_other")


class Door:
    """The way in for all of them. It keeps what was answered; what cannot be reached is nobody's answer."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self._http = httpx.Client(headers=headers, timeout=_PATIENCE_SECONDS, trust_env=False)
        self._lock = threading.Lock()
        self.statuses: Counter[int] = Counter()
        self.unreachable = 0
        self.bad: list[str] = []

    def ask(
        self, chance: random.Random, method: str, path: str, body: Any = None, key: str | None = None
    ) -> httpx.Response | None:
        headers = {} if key is None else {"Idempotency-Key": key}
        given = {} if method == "GET" or body is None else {"json": body}
        try:
            answer = self._http.request(method, chance.choice(self._urls) + path, headers=headers, **given)
        except httpx.TransportError:
            with self._lock:
                self.unreachable += 1
            return None
        with self._lock:
            self.statuses[answer.status_code] += 1
            if answer.status_code >= 500 and answer.status_code != 503:
                self.bad.append(f"{answer.status_code} {method} {path}: {answer.text[:500]}")
        return answer

    def insist(self, chance: random.Random, method: str, path: str, body: Any = None, *, seconds: float) -> int:
        """Until somebody answers for good: the last status, 0 if nobody ever did."""
        end, status = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            answer = self.ask(chance, method, path, body)
            status = 0 if answer is None else answer.status_code
            if status in (400, 404, 422) or 200 <= status < 300:
                break
            time.sleep(0.2)
        return status

    def close(self) -> None:
        self._http.close()


# ── people ───────────────────────────────────────────────────────────────────────────────────────────


class People:
    """`definitions` by id: what is deleted is created again under its old id."""

    def __init__(self, door: Door, seed: int, definitions: Mapping[str, dict[str, Any]]) -> None:
        self._door, self._definitions = door, definitions
        self._chance = random.Random(f"people {seed}")
        self._number = 0
        self.runs_by_key: dict[str, set[str]] = defaultdict(set)
        """Of triggers that were sent again with the same key: the runs that were answered."""

    def act(self) -> None:
        chance = self._chance
        schedule_id = chance.choice(sorted(self._definitions))
        acts: list[Callable[[str], None]] = [
            *[self._trigger] * 4, *[self._edit] * 4, *[self._pause_or_resume] * 4, self._backfill, self._delete,
            self._stop_a_run, self._look, self._look,
        ]  # fmt: skip
        chance.choice(acts)(schedule_id)
        time.sleep(chance.uniform(0.02, 0.2))

    def _ask(self, method: str, path: str, body: Any = None, key: str | None = None) -> httpx.Response | None:
        return self._door.ask(self._chance, method, path, body, key)

    def _trigger(self, schedule_id: str) -> None:
        """Half of them by people who do not trust the line, and ask twice."""
        body = {"overlap_policy": self._chance.choice(_OVERLAPS)} if self._chance.random() < 0.3 else {}
        self._number += 1
        key = f"press-{self._number}" if self._chance.random() < 0.5 else None
        for _ in range(1 if key is None else 2):
            answer = self._ask("POST", f"/api/schedules/{schedule_id}/trigger", body, key)
            if key is not None and answer is not None and answer.is_success and "run_id" in answer.json():
                self.runs_by_key[key].add(answer.json()["run_id"])

    def _edit(self, schedule_id: str) -> None:
        given = self._definitions[schedule_id]
        changes: list[dict[str, Any]] = [
            {"name": f"name {self._chance.randrange(100)}"},
            {"cron_expressions": [self._chance.choice([EVERY_SECOND, "*/2 * * * * *", "*/3 * * * * *"])]},
            {"cron_expressions": given["cron_expressions"]},
            {"overlap_policy": self._chance.choice(_OVERLAPS)},
            {"overlap_policy": given.get("overlap_policy", "skip")},
        ]
        self._ask("PATCH", f"/api/schedules/{schedule_id}", self._chance.choice(changes))

    def _pause_or_resume(self, schedule_id: str) -> None:
        self._ask("POST", f"/api/schedules/{schedule_id}/{self._chance.choice(['pause', 'resume', 'resume'])}", {})

    def _backfill(self, schedule_id: str) -> None:
        now = datetime.now(UTC)
        start = now - timedelta(seconds=self._chance.randrange(5, 30))
        end = start + timedelta(seconds=self._chance.randrange(2, 6))
        span = {"start_time": start.isoformat(), "end_time": end.isoformat()}
        self._ask("POST", f"/api/schedules/{schedule_id}/backfill", span)

    def _delete(self, schedule_id: str) -> None:
        self._ask("DELETE", f"/api/schedules/{schedule_id}")
        self._ask("POST", "/api/schedules", self._definitions[schedule_id])

    def _stop_a_run(self, schedule_id: str) -> None:
        answer = self._ask("GET", f"/api/schedules/{schedule_id}/runs?page_size=5")
        found = answer.json()["runs"] if answer is not None and answer.is_success else []
        if found:
            chosen = self._chance.choice(found)["run_id"]
            self._ask("POST", f"/api/runs/{chosen}/{self._chance.choice(['cancel', 'terminate'])}", {})

    def _look(self, schedule_id: str) -> None:
        paths = (f"/api/schedules/{schedule_id}", f"/api/schedules/{schedule_id}/history", "/api/runs", "/readyz")
        self._ask("GET", self._chance.choice(paths))


# ── those who report ─────────────────────────────────────────────────────────────────────────────────


class Reports:
    """What was said about runs, and which of it was taken for the end."""

    def __init__(self, door: Door, chance: random.Random) -> None:
        self._door, self._chance = door, chance
        self.recorded: Counter[str] = Counter()

    def tell(self, run_id: str, body: dict[str, Any], *, tries: int = 8) -> None:
        for _ in range(tries):
            answer = self._door.ask(self._chance, "POST", f"/api/runs/{run_id}/report", body)
            if answer is not None and answer.status_code < 500:
                if answer.is_success and answer.json().get("outcome") == "recorded":
                    self.recorded[run_id] += 1
                return
            time.sleep(0.3)


class QueueWorker:
    """Claims what waits on a queue: most is done, some fails, some is forgotten, some is said twice."""

    def __init__(self, door: Door, seed: int, calm: threading.Event) -> None:
        self._door, self._calm = door, calm
        self._chance = random.Random(f"worker {seed}")
        self.reports = Reports(door, self._chance)
        self.done: set[str] = set()
        self.taken_once: Counter[tuple[str, int]] = Counter()
        """How often an attempt of a run was handed out that must be handed out once at most."""

    def act(self) -> None:
        answer = self._door.ask(self._chance, "POST", f"/api/queues/{QUEUE}/claim", {"worker": "chaos", "limit": 5})
        taken = answer.json()["runs"] if answer is not None and answer.is_success else []
        for run in taken:
            self.taken_once[run["run_id"], run["attempt"]] += run["schedule_id"] == PULLED_ONCE
            self._work(run)
        if not taken:
            time.sleep(0.3)

    def _work(self, run: dict[str, Any]) -> None:
        drawn = 1.0 if self._calm.is_set() else self._chance.random()
        if drawn < 0.1:
            return  # its lease will run out
        fence: dict[str, Any] = {name: run[name] for name in ("lease_epoch", "report_token") if name in run}
        if drawn < 0.3:
            beat = {"lease_epoch": run["lease_epoch"]}
            self._door.ask(self._chance, "POST", f"/api/runs/{run['run_id']}/heartbeat", beat)
        if drawn < 0.4:
            self.reports.tell(run["run_id"], {"state": "failed", "error": "not today", **fence})
            return
        self.done.add(run["run_id"])
        for _ in range(2 if drawn < 0.5 else 1):
            self.reports.tell(run["run_id"], {"state": "succeeded", "result": {"by": "chaos"}, **fence})


class Reporter:
    """Tells what became of what the target has accepted: late, twice, or never."""

    def __init__(self, door: Door, seed: int, target: Target) -> None:
        self._target = target
        self._chance = random.Random(f"reporter {seed}")
        self.reports = Reports(door, self._chance)

    def act(self) -> None:
        try:
            accepted = self._target.accepted.get(timeout=0.3)
        except queue.Empty:
            return
        drawn = 1.0 if self._target.calm.is_set() else self._chance.random()
        if drawn < 0.1:
            return
        if drawn < 0.2:
            time.sleep(1.0)
        token = {name: accepted.data[name] for name in ("report_token",) if name in accepted.data}
        for _ in range(2 if drawn < 0.4 else 1):
            self.reports.tell(accepted.run_id, {"state": "succeeded", "result": {"told": "later"}, **token})


@contextmanager
def busy(*acts: Callable[[], None]) -> Iterator[None]:
    """Each act again and again, in a thread of its own, while the block lasts; an error in one is raised at the end."""
    stop, errors = threading.Event(), list[BaseException]()

    def go_on(act: Callable[[], None]) -> None:
        try:
            while not stop.is_set():
                act()
        except BaseException as wrong:
            errors.append(wrong)

    threads = [threading.Thread(target=go_on, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
