"""Who guesses tokens, and who opens stream after stream."""

from __future__ import annotations

import threading

import httpx
import pytest
from api.streams import Listener
from world import START

from horarium.testing import TestService, service
from horarium.testing.service import TOKEN

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


def test_who_guesses_tokens_is_slowed_down_and_nobody_else(database_url: str) -> None:
    knobs = {"failed_logins_per_minute": 3, "behind_proxy": True}
    with service(at=START, database=database_url, settings=knobs) as horarium:
        guessing, good = horarium.http(token=None), horarium.http()
        here = {"X-Forwarded-For": "192.0.2.1"}

        def guess(secret: str, **headers: str) -> httpx.Response:
            return guessing.get("/api/schedules", headers={"Authorization": f"Bearer {secret}", **here, **headers})

        assert [guess(f"guess-{n}").status_code for n in range(4)] == [401, 401, 401, 429]
        refused = guess("guess-5")
        assert (refused.json()["reason"], refused.headers["retry-after"]) == ("too_many_failed_logins", "20")
        # Of reports as well; and a good token from the same address goes on.
        run_id = "0" * 26
        said = {"state": "succeeded", "report_token": "hrt_forged"}
        assert guessing.post(f"/api/runs/{run_id}/report", json=said, headers=here).status_code in (401, 429)
        assert good.get("/api/schedules", headers=here).status_code == 200
        assert guess("guess-6", **{"X-Forwarded-For": "192.0.2.2"}).status_code == 401
        assert guessing.get("/api/schedules", headers=here).status_code == 401  # nothing was tried
        horarium.clock.advance(20)
        assert guess("guess-7").status_code == 401


def test_a_token_has_so_many_streams_and_those_that_end_are_free_again(database_url: str) -> None:
    with service(at=START, database=database_url, settings={"streams_per_token": 1}) as horarium:
        assert second_while_open(horarium) == (200, 429)
        # Spelled otherwise it is the same token.
        assert second_while_open(horarium, authorization=f"bearer  {TOKEN}") == (200, 429)


def second_while_open(horarium: TestService, **headers: str) -> tuple[int, int]:
    """The status of a stream that is open, and of another that is asked for meanwhile."""
    first, second = Listener(horarium.parts.api), Listener(horarium.parts.api, headers=headers)
    tried = threading.Event()

    def ask_again() -> None:
        def ask() -> None:
            second.listen(lambda it: it.status != 0)
            tried.set()
            horarium.create(schedule_id=f"s-{horarium.now}", cron_expressions=["@daily"], workflow_type="r")
            horarium.clock.advance(1)

        threading.Thread(target=ask, daemon=True).start()

    first.listen(lambda it: tried.is_set() and bool(it.heard), ask_again)
    return first.status, second.status
