"""Keys from a server that is slow, gone or hostile: nobody waits for long, and what is not good is not taken."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import jwt
import pytest
import structlog
from signing import SECRET, claims, key_pair, shared, signed
from world import FakeClock

from horarium.instant import SECOND
from horarium.platform.errors import Unauthorized
from horarium.platform.http import remote_keys
from horarium.platform.http.jwts import Jwts
from horarium.platform.http.remote_keys import Known, RemoteKeys, fetch_keys
from horarium.platform.settings import Settings

NOW = 1_772_323_200
_, _, PUBLIC = key_pair("ES256")
PUBLISHED = {**PUBLIC, "kid": "one"}
ONE, TWO = jwt.PyJWK(PUBLISHED), jwt.PyJWK({**PUBLIC, "kid": "two"})


@pytest.mark.parametrize(
    ("known", "name", "now", "asks", "good"),
    [
        pytest.param(Known(), None, 0, True, False, id="nothing yet"),
        pytest.param(Known(asked_at=0), "one", 29.9, False, False, id="nobody answered a moment ago"),
        pytest.param(Known(asked_at=0), "one", 30, True, False, id="nobody answered half a minute ago"),
        pytest.param(Known((ONE,), 0, 0), "one", 599, False, True, id="fresh"),
        pytest.param(Known((ONE,), 0, 0), None, 599, False, True, id="fresh, without a name"),
        pytest.param(Known((ONE,), 0, 0), "one", 600, True, True, id="ten minutes old"),
        pytest.param(Known((ONE,), 0, 590), "one", 600, False, True, id="ten minutes old, asked already"),
        pytest.param(Known((ONE,), 0, 0), "two", 29, False, True, id="an unknown name just after"),
        pytest.param(Known((ONE,), 0, 0), "two", 30, True, True, id="an unknown name later"),
        pytest.param(Known((ONE,), 0, 86_390), "one", 86_399, False, True, id="a day without an answer, nearly"),
        pytest.param(Known((ONE,), 0, 86_390), "one", 86_400, False, False, id="a day without an answer"),
    ],
)
def test_when_it_is_asked_and_what_is_good_meanwhile(
    known: Known, name: str | None, now: float, asks: bool, good: bool
) -> None:
    assert known.must_ask(name, now) is asks
    assert bool(known.good(now)) is good


class Issuer:
    """Answers with `keys`, or fails where they are None; counts how often it was asked, and may be held up."""

    def __init__(self) -> None:
        self.keys: tuple[jwt.PyJWK, ...] | None = (ONE,)
        self.asked = 0
        self.answers = threading.Event()
        self.answers.set()

    def __call__(self) -> tuple[jwt.PyJWK, ...]:
        self.asked += 1
        self.answers.wait(60)
        if self.keys is None:
            raise OSError("nobody there")
        return self.keys


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def keys(issuer: Issuer, clock: FakeClock) -> RemoteKeys:
    return RemoteKeys(issuer, clock, structlog.get_logger())


def test_tokens_with_invented_names_do_not_make_us_ask_each_time(
    keys: RemoteKeys, issuer: Issuer, clock: FakeClock
) -> None:
    for number in range(100):
        keys.current(f"invented {number}")
    assert issuer.asked == 1
    issuer.keys = (ONE, TWO)
    clock.advance(30)
    assert keys.current("two") == (ONE, TWO), "a key that is new is found"
    assert issuer.asked == 2


def test_keys_that_are_known_stay_good_while_the_issuer_is_gone_but_not_for_ever(
    keys: RemoteKeys, issuer: Issuer, clock: FakeClock
) -> None:
    assert keys.current("one") == (ONE,)
    issuer.keys = None
    clock.advance(86_399)
    assert keys.current("one") == (ONE,)
    clock.advance(1)
    assert keys.current("one") == ()


def test_one_asks_and_the_others_do_not_wait_for_a_slow_issuer(
    keys: RemoteKeys, issuer: Issuer, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert keys.current("one") == (ONE,)
    issuer.answers.clear()
    clock.advance(600)
    try:
        for _ in range(100):
            assert keys.current("one") == (ONE,)
        # Whoever names a key that nobody knows takes a place among few, and the rest are told at once.
        monkeypatch.setattr(remote_keys, "_ASK_SECONDS", -1)
        assert keys.current("two") == (ONE,)
        assert issuer.asked == 2
    finally:
        issuer.answers.set()


# ── hostile answers ──────────────────────────────────────────────────────────────────────────────────


@contextmanager
def answering(*pieces: bytes, again: bytes = b"", pause: float = 0) -> Iterator[str]:
    """A server that says this to whoever connects; then `again`, each time after a pause, for as long as it may."""
    stop = threading.Event()

    def serve(listening: socket.socket) -> None:
        with suppress(OSError):  # who asked has had enough
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                for piece in pieces:
                    connection.sendall(piece)
                while again and not stop.is_set():
                    connection.sendall(again)
                    stop.wait(pause)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/jwks"
        finally:
            stop.set()
            thread.join(60)


def said(body: bytes | str, *headers: str, status: str = "200 OK") -> bytes:
    raw = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(raw)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + raw


ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "again", "pause", "told"),
    [
        pytest.param(ENDLESS, b'{"keys": []}' * 5_000, 0, "more than|no complete response", id="without end"),
        pytest.param(ENDLESS, b" ", 0.01, "no .*response", id="drop by drop"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX-", b"y", 0.01, "no .*response", id="headers drop by drop"),
        pytest.param(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 5_000, 0, "no response", id="headers without end"),
        pytest.param(said("", "Location: http://127.0.0.1:1/", status="302 Found"), b"", 0, "302", id="redirected"),
        pytest.param(said("[]", status="500 Oops"), b"", 0, "500", id="broken"),
        pytest.param(said("{}", "Content-Encoding: gzip"), b"", 0, "compressed", id="packed"),
        pytest.param(said("[" * 100_000), b"", 0, "nested", id="deep"),
        pytest.param(said("<html>"), b"", 0, "Expecting", id="no JSON"),
        pytest.param(said(b'{"keys": "\xff"}'), b"", 0, "decode", id="no text"),
        pytest.param(said('{"keys": [1]}'), b"", 0, "list of keys", id="no keys"),
        pytest.param(said(json.dumps({"keys": [PUBLISHED] * 101})), b"", 0, "more than 100", id="too many"),
        pytest.param(said(json.dumps({"keys": [shared(SECRET, "s")]})), b"", 0, "no usable", id="a shared secret"),
        pytest.param(said('{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}, {}]}'), b"", 0, "no usable", id="bad"),
        pytest.param(b"no HTTP at all\r\n\r\n", b"", 0, "no response", id="another protocol"),
        pytest.param(b"", b"", 0, "no response", id="silence"),
    ],
)
def test_an_answer_that_is_not_good_is_given_up_in_bounded_time(
    answer: bytes, again: bytes, pause: float, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if pause:
        monkeypatch.setattr(remote_keys, "_ASK_SECONDS", 0.3)
    with answering(answer, again=again, pause=pause) as url, pytest.raises(ValueError, match=told):
        fetch_keys(url)


def test_keys_that_we_do_not_know_are_left_out() -> None:
    """RFC 7517 section 5."""
    strange = [{"kty": "NEW"}, {"kty": "RSA", "alg": ["RS256"]}, {**PUBLIC, "x": 5}]
    mixed = [*strange, shared(SECRET, "s"), PUBLISHED, {**PUBLIC, "kid": "two", "use": "enc"}]
    with answering(said(json.dumps({"keys": mixed}))) as url:
        assert {key.key_id for key in fetch_keys(url)} == {"one"}


def test_a_token_of_a_remote_issuer_is_good_and_one_that_is_signed_with_what_it_publishes_is_not() -> None:
    private, pem, jwk = key_pair("RS256")
    published = {"keys": [{**jwk, "kid": "one"}, shared(SECRET, "shared")]}
    with answering(said(json.dumps(published))) as url:
        settings = Settings(jwks_url=url, jwt_audience="horarium")
        known = Jwts(settings, FakeClock(NOW * SECOND), structlog.get_logger())
        good = jwt.encode(claims(NOW), private, algorithm="RS256", headers={"kid": "one"})
        assert known.identify(good)[0] == "ci"
        for forged in (
            signed(claims(NOW), SECRET, kid="shared"),
            signed(claims(NOW), pem, kid="one"),
            jwt.encode(claims(NOW), private, algorithm="RS256", headers={"kid": "two"}),
        ):
            with pytest.raises(Unauthorized):
                known.identify(forged)
