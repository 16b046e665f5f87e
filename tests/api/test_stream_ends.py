"""Whoever is no longer welcome hears no more: revocation, expiry and removal end open streams within ten seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jwt
import pytest
from api.streams import Listener

from horarium.features.history import routes as history_routes
from horarium.features.history import streams
from horarium.features.history.entry_rows import START, FeedCursor
from horarium.features.history.streams import StreamPage
from horarium.features.resources import Resources
from horarium.instant import SECOND
from horarium.platform.caller import Caller
from horarium.platform.http.browser_sessions import SessionCookies
from horarium.testing import TestService, service

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

SECRET = "a secret of at least thirty-two bytes"
LASTS = 60
# As it is without this file's hurry.
ASKED_EVERY = history_routes.WELCOME_SECONDS + streams.LOOK_SECONDS


@pytest.fixture
def horarium(database_url: str) -> Iterator[TestService]:
    knobs = {"jwt_secret": SECRET, "jwt_audience": "horarium"}
    with service(at="2026-03-01T00:00:00Z", database=database_url, settings=knobs) as running:
        assert running.http().post("/api/namespaces", json={"namespace": "tenant"}).status_code == 201
        yield running


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (history_routes, streams):
        monkeypatch.setattr(module, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(history_routes, "WELCOME_SECONDS", 0.1)


def keep_busy(horarium: TestService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never silent: there is always one more entry to tell."""
    body = {"schedule_id": "s", "cron_expressions": ["0 * * * *"], "workflow_type": "x"}
    assert horarium.http(namespace="tenant").post("/api/schedules", json=body).status_code == 201
    read = streams._read

    def again(resources: Resources, caller: Caller, _cursor: FeedCursor, now: float) -> StreamPage:
        return replace(read(resources, caller, START, now), cursor=START)

    monkeypatch.setattr(streams, "_read", again)


def issued(horarium: TestService, **more: Any) -> dict[str, Any]:
    answer = horarium.http(namespace="tenant").post("/api/tokens", json={"name": "x", "role": "viewer", **more})
    token: dict[str, Any] = answer.json()
    return token


def revoked(horarium: TestService) -> tuple[str, Callable[[], object]]:
    token, http = issued(horarium), horarium.http(namespace="tenant")
    return token["secret"], lambda: http.delete(f"/api/tokens/{token['token_id']}").raise_for_status()


def rotated(horarium: TestService) -> tuple[str, Callable[[], object]]:
    token, http = issued(horarium), horarium.http(namespace="tenant")
    path = f"/api/tokens/{token['token_id']}/rotate"
    return token["secret"], lambda: http.post(path, json={"overlap_seconds": 0}).raise_for_status()


def expired(horarium: TestService) -> tuple[str, Callable[[], object]]:
    token = issued(horarium, expires_at="2026-03-01T00:01:00Z")
    return token["secret"], lambda: horarium.clock.advance(LASTS)


def expired_jwt(horarium: TestService) -> tuple[str, Callable[[], object]]:
    """At the moment that it names: the leeway is for clocks that differ when somebody comes in."""
    begins = horarium.now // SECOND
    times = {"iat": begins, "exp": begins + LASTS}
    said = {"sub": "ci", "role": "viewer", "namespace": "tenant", "aud": "horarium", **times}
    return jwt.encode(said, SECRET, "HS256"), lambda: horarium.clock.advance(LASTS)


def removed(horarium: TestService) -> tuple[str, Callable[[], object]]:
    http = horarium.http()
    return issued(horarium)["secret"], lambda: http.delete("/api/namespaces/tenant?force=true").raise_for_status()


@pytest.mark.parametrize("end", [revoked, rotated, expired, expired_jwt, removed], ids=lambda end: end.__name__)
def test_an_open_stream_ends_with_the_right_to_it(
    horarium: TestService, end: Callable[[TestService], tuple[str, Callable[[], object]]]
) -> None:
    secret, act = end(horarium)
    listener = Listener(horarium.parts.api, headers={"authorization": f"Bearer {secret}"})
    listener.listen(lambda _me: False, act)
    assert (listener.status, listener.ended) == (200, True)


def test_a_stream_in_a_browser_ends_with_the_session(horarium: TestService) -> None:
    sessions = SessionCookies(horarium.resources.tokens.key)
    cookie = f"{sessions.name}={sessions.seal(issued(horarium)['secret'], horarium.now + LASTS * SECOND)}"
    listener = Listener(horarium.parts.api, headers={"authorization": None, "cookie": cookie})
    listener.listen(lambda _me: False, lambda: horarium.clock.advance(LASTS))
    assert (listener.status, listener.ended) == (200, True)


def test_a_stream_that_is_never_silent_ends_as_well(horarium: TestService, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_busy(horarium, monkeypatch)
    test_an_open_stream_ends_with_the_right_to_it(horarium, revoked)


def test_whoever_may_stay_stays(horarium: TestService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_routes, "COMMENT_SECONDS", 0.3)
    listener = Listener(horarium.parts.api).listen(lambda me: me.comments >= 2)
    assert not listener.ended
    assert ASKED_EVERY < 10
