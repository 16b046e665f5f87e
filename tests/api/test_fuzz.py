"""The door under hostile requests, byte by byte through a real server: refused in time, nothing stored, nobody hurt."""

from __future__ import annotations

import base64
import json
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import pytest
import sqlalchemy as sa
from api.hostile import LENIENT, VALUES, replaced
from api.tenants import OF_ONE_S_OWN
from api.worlds import CALENDAR, SCHEDULE, World, world
from world import serving

from horarium.core.policy.queue import MAX_ID
from horarium.features.schedules.filters import EVERYTHING, make_list_token
from horarium.features.schedules.list_rows import Cursor
from horarium.platform.database.tables import metadata, schedules
from horarium.platform.http.openapi import HIDDEN
from horarium.platform.http.routing import OPERATIONS
from horarium.testing.service import TOKEN

pytestmark = pytest.mark.repeats
# A database that takes less than the other: no zero in a text, no integer beyond its column.
on_the_strict_one = pytest.mark.parametrize(
    "dialect", ["postgresql", pytest.param("sqlite", marks=pytest.mark.long)], indirect=True
)
IS_FULL = int(os.environ.get("HORARIUM_TEST_EFFORT", "1")) > 1
# Of processor time, the server included: far more than a request needs, far less than an attacker would like.
LONGEST_SECONDS = 15.0
LONGEST_MESSAGE = 1_000
LONGEST_ANSWER = 6_000

WITH_BODY = sorted(route for route, operation in OPERATIONS.items() if operation.body is not None)
NAMED = sorted(route for route in OPERATIONS if "{" in route[1] and route[1] not in HIDDEN)

Headers = Mapping[str, str | bytes]


@dataclass(frozen=True)
class Heard:
    status: int
    headers: list[bytes]
    body: bytes
    seconds: float

    def complaint(self, allowed: range = range(400, 500)) -> str | None:
        """What is wrong with this answer to a hostile request; None = nothing."""
        if self.status not in allowed:
            return f"{self.status}: {self.body[:200]!r}"
        if self.seconds > LONGEST_SECONDS:
            return f"it took {self.seconds:.1f} s"
        if self.status < 400:
            return None
        if len(self.body) > LONGEST_ANSWER:
            return f"{len(self.body)} bytes: {self.body[:200]!r}"
        message = self.message()
        return None if 0 < len(message) <= LONGEST_MESSAGE else f"says {message[:200]!r}"

    def message(self) -> str:
        """The server itself speaks plain text where the request was no HTTP."""
        if any(line.lower().startswith(b"content-type: text/plain") for line in self.headers):
            return self.body.decode()
        return str(json.loads(self.body)["message"])


@dataclass(frozen=True)
class Wire:
    """Says what it is told, whatever it means; the headers that a request needs are there unless replaced."""

    here: World
    address: tuple[str, int]

    def send(self, method: str, target: str, headers: Headers | None = None, body: bytes = b"") -> Heard:
        usual: Headers = {
            "Host": "localhost",
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
        lines = [f"{method} {target} HTTP/1.1".encode()]
        for name, value in {**usual, **(headers or {})}.items():
            lines.append(name.encode() + b": " + (value if isinstance(value, bytes) else value.encode()))
        return self.say(b"\r\n".join(lines) + b"\r\n\r\n" + body)

    def say(self, message: bytes) -> Heard:
        begun = time.process_time()
        with socket.create_connection(self.address, timeout=60) as wire:
            with suppress(ConnectionError):  # refused before it was all said; the answer is there
                wire.sendall(message)
            said = _all_of(wire)
        seconds = time.process_time() - begun
        head, _, body = said.partition(b"\r\n\r\n")
        status, *headers = head.split(b"\r\n")
        return Heard(int(status.split()[1]), headers, body, seconds)

    def path(self, path: str, **names: str) -> str:
        return path.format(**{**self.here.names, **names})


def _all_of(wire: socket.socket) -> bytes:
    pieces: list[bytes] = []
    with suppress(ConnectionResetError):  # it did not want to hear the rest
        while piece := wire.recv(65_536):
            pieces.append(piece)
    return b"".join(pieces)


@pytest.fixture
def wire(database_url: str) -> Iterator[Wire]:
    """However it is treated, afterwards what is due still fires, and the records are in order."""
    with world(database_url) as here:
        horarium = here.horarium
        horarium.create(schedule_id="still-here", cron_expressions=["0 * * * *"], workflow_type="pulse")
        with serving(horarium.parts) as url:
            host, _, port = url.removeprefix("http://").rpartition(":")
            yield Wire(here, (host, int(port)))
        before = len(horarium.runs("still-here"))
        horarium.advance(hours=1)
        assert len(horarium.runs("still-here")) == before + 1
        assert horarium.verify() == []


def stored(wire: Wire) -> dict[str, int]:
    """How much there is in every table; a schedule that was changed counts by its version."""

    def count(connection: sa.Connection) -> dict[str, int]:
        found = {
            table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in metadata.sorted_tables
        }
        versions = sa.select(sa.func.coalesce(sa.func.sum(schedules.c.version), 0))
        return {**found, "versions": int(connection.execute(versions).scalar_one())}

    return wire.here.horarium.resources.database.read(count)


def each_in_turn(wire: Wire, routes: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Time enough passes between two that the token is not held back for asking too often."""
    for route in routes:
        wire.here.horarium.clock.advance(5)
        yield route


def complaints(answers: Iterable[tuple[str, Heard]], allowed: range = range(400, 500)) -> dict[str, str]:
    found = ((name, answer.complaint(allowed)) for name, answer in answers)
    return {name: wrong for name, wrong in found if wrong is not None}


# What a database may refuse is sent to every place; so many of the other cases share each place in the ordinary run.
ALWAYS = {"zero", "long integer", "null", "not utf-8", "surrogate"}
SHARING = 1 if IS_FULL else 3


def is_sent(case: str, place: int) -> bool:
    """Whether this case is sent to this place; `place` counts the cases too, so that each takes another turn."""
    return case in ALWAYS or place % SHARING == 0


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────

JSON = "application/json"
LONG = b"x" * 10_000_000

BODIES: dict[str, tuple[bytes, str]] = {
    "ten megabytes": (b'{"note": "' + LONG + b'"}', JSON),
    "ten thousand deep": (b'{"note": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", JSON),
    "ten thousand deep, never closed": (b'{"a":' * 10_000, JSON),
    "not a number": (b'{"note": NaN}', JSON),
    "infinity": (b'{"note": -Infinity}', JSON),
    "beyond a double": (b'{"odd": 1e999}', JSON),
    "ten thousand digits": (b'{"odd": ' + b"9" * 10_000 + b"}", JSON),
    "lone surrogate": (b'{"note": "\\ud800"}', JSON),
    "lone surrogate as a name": (b'{"\\udfff": 1}', JSON),
    "surrogate in bytes": (b'{"note": "\xed\xa0\x80"}', JSON),
    "zero byte": (b'{"note": "a\x00b"}', JSON),
    "zero as a name": (b'{"\\u0000": 1}', JSON),
    "the same name twice": (b'{"odd": 1, "odd": 2}', JSON),
    "the same name twice inside": (b'{"odd": [{"a": 1, "a": 1}]}', JSON),
    "a hundred thousand names": (json.dumps({f"odd{n}": n for n in range(100_000)}).encode(), JSON),
    "a long name": (b'{"' + b"n" * 100_000 + b'": 1}', JSON),
    "two documents": (b"{}{}", JSON),
    "half": (b'{"note": "', JSON),
    "single quotes": (b"{'note': 'x'}", JSON),
    "comment": (b"{/* hello */}", JSON),
    "array": (b"[1, 2]", JSON),
    "text": (b'"text"', JSON),
    "number": (b"12", JSON),
    "true": (b"true", JSON),
    "null": (b"null", JSON),
    "bytes": (bytes(range(256)), JSON),
    "byte order mark": (b"\xef\xbb\xbf{}", JSON),
    "utf-16": ('{"note": "x"}'.encode("utf-16"), JSON),
    "latin-1": ('{"note": "é"}'.encode("latin-1"), JSON),
    "form": (b"note=x", "application/x-www-form-urlencoded"),
    "multipart": (b"--x\r\n\r\n--x--", "multipart/form-data; boundary=x"),
    "plain text": (b'{"note": "x"}', "text/plain"),
    "xml": (b"<note/>", "application/xml"),
    "no type at all": (b"{'note'", ""),
}
# Where it is read makes no difference, and to read it takes as long as all the others together.
LARGEST = "a hundred thousand names"


@pytest.mark.parametrize("dialect", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True)
def test_a_hostile_body_is_refused_and_leaves_nothing(wire: Wire) -> None:
    before = stored(wire)
    for number, (method, path) in enumerate(each_in_turn(wire, WITH_BODY)):
        answers = (
            (f"{method} {path}: {name}", wire.send(method, wire.path(path), {"Content-Type": kind}, body))
            for name, (body, kind) in BODIES.items()
            if IS_FULL or name != LARGEST or number % 10 == 0
        )
        assert complaints(answers, range(200 if (method, path) in LENIENT else 400, 500)) == {}
    assert stored(wire) == before


def test_a_packed_body_is_refused_and_not_unpacked(wire: Wire) -> None:
    """A kilobyte may hold a gigabyte."""
    answer = wire.send("POST", "/api/schedules", {"Content-Encoding": "gzip"}, b"\x1f\x8b\x08\x00")
    assert (answer.status, answer.complaint()) == (415, None)


FRAMINGS = [
    {"Content-Length": "5"},
    {"Content-Length": "-1"},
    {"Content-Length": "1e3"},
    {"Content-Length": "99999999999999999999999"},
    {"Content-Length": "2", "Transfer-Encoding": "chunked"},
    {"Transfer-Encoding": "chunked, gzip"},
]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_body_that_lies_about_its_length_hurts_nobody(wire: Wire) -> None:
    """Whoever promises more than is sent is waited for, but holds up nobody else."""
    for framing in FRAMINGS:
        begun = time.process_time()
        with socket.create_connection(wire.address, timeout=60) as slow:
            headers = {"Host": "localhost", "Authorization": f"Bearer {TOKEN}", **framing}
            lines = [f"{name}: {value}" for name, value in headers.items()]
            slow.sendall(("POST /api/schedules HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n{}").encode())
            assert wire.send("GET", f"/api/schedules/{SCHEDULE}").status == 200, framing
        assert time.process_time() - begun < LONGEST_SECONDS, framing


@on_the_strict_one
def test_a_value_in_the_wrong_place_is_never_our_defect(wire: Wire) -> None:
    answers = (
        (f"{method} {path}: {place} = {name}", wire.send(method, wire.path(path), body=json.dumps(body).encode()))
        for route, (method, path) in enumerate(each_in_turn(wire, WITH_BODY))
        for turn, (name, value) in enumerate(VALUES.items(), route)
        for number, (place, body) in enumerate(replaced(OPERATIONS[method, path].example.body, value), turn)
        if is_sent(name, number)
    )
    assert complaints(answers, range(200, 500)) == {}


def test_a_field_given_twice_is_named(wire: Wire) -> None:
    """Other readers take the first, or the last: which one was meant, nobody knows."""
    answer = wire.send("POST", "/api/schedules", body=b'{"schedule_id": "a", "action": {"url": 1, "url": 2}}')
    assert (answer.status, "'url'" in answer.message()) == (400, True)


# ── names in paths ───────────────────────────────────────────────────────────────────────────────────

IDS = {
    "parent": "..",
    "encoded parent": "%2e%2e",
    "climbing": "..%2f..%2fetc%2fpasswd",
    "slash": f"{SCHEDULE}%2F",
    "backslash": f"{SCHEDULE}%5C",
    "zero": f"{SCHEDULE}%00",
    "line end": f"{SCHEDULE}%0d%0aX-Evil:1",
    "space": "%20",
    "trailing space": f"{SCHEDULE}%20",
    "accent": quote("é"),
    "decomposed": quote("e\u0301"),
    "right to left": quote("\u202e"),
    "not utf-8": "%ff%fe",
    "surrogate": "%ed%a0%80",
    "half an escape": "%2",
    "percent": "%25",
    "quote": quote("' OR 1=1 --"),
    "wildcard": quote("%_"),
    "braces": quote("{schedule_id}"),
    "number": "18446744073709551616",
    "ten kilobytes": "x" * 10_000,
    "ten kilobytes of escapes": "%F0%9F%95%92" * 830,
    "as an id": "7" * 26,
    "beyond an id": "Z" * 26,
}


@on_the_strict_one
def test_a_hostile_name_finds_nothing(wire: Wire) -> None:
    before = stored(wire)
    for route, (method, path) in enumerate(each_in_turn(wire, NAMED)):
        *_, name = (part[1:-1] for part in path.split("/") if part.startswith("{"))
        body = (
            b""
            if OPERATIONS[method, path].example.body is None
            else json.dumps(OPERATIONS[method, path].example.body).encode()
        )
        query = "?at=2026-03-01T23:00:00Z" if path.endswith("/explain") else ""
        # A queue is where somebody waits: any name is one, and nothing waits there.
        allowed = range(200, 500) if name == "queue" else range(400, 500)
        # To name one makes it, so that a name which is merely unknown is no hostile one.
        makes = method == "PUT" and (method, path) in OF_ONE_S_OWN
        answers = (
            (f"{method} {path}: {what}", wire.send(method, wire.path(path, **{name: value}) + query, body=body))
            for number, (what, value) in enumerate(IDS.items(), route)
            if is_sent(what, number) and not (makes and value.isalnum() and len(value) <= MAX_ID)
        )
        assert complaints(answers, allowed) == {}
    assert stored(wire) == before


PATHS = {
    "star": "*",
    "nothing": "//",
    "double slash": "/api//schedules",
    "two at the end": "/api/schedules//",
    "one at the end": "/api/schedules/",
    "capitals": "/API/schedules",
    "escaped letters": "/%61pi/nothing",
    "climbing": "/../api",
    "long": "/" + "x" * 10_000,
    "elsewhere": "http://elsewhere.test/api/nothing",
    "fragment": "/api/schedules#x",
    "matrix": "/api/schedules;x=1",
}


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_strange_path_leads_nowhere(wire: Wire) -> None:
    assert complaints((name, wire.send("GET", target)) for name, target in PATHS.items()) == {}


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_strange_method_is_refused(wire: Wire) -> None:
    methods = ["TRACE", "CONNECT", "OPTIONS", "HEAD", "BREW", "get", "X" * 1_000]
    answers = {method: wire.send(method, "/api/schedules") for method in methods}
    assert answers.pop("HEAD").status == 405  # says nothing more, as it must
    assert complaints(answers.items()) == {}


# ── cursors, page tokens and other parameters ────────────────────────────────────────────────────────


def forged(**changes: Any) -> str:
    """A token that is well made and was never given; its checksum has no key."""
    content = {
        "version": 1,
        "namespace": "default",
        "filter_fingerprint": EVERYTHING.fingerprint(),
        "cursor": {"created_at": 0, "schedule_id": "x"},
        **changes,
    }
    text = base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")
    return f"{text}.{sha256(text.encode()).hexdigest()}"


GOOD_TOKEN = make_list_token("default", EVERYTHING.fingerprint(), Cursor(0, "x"))
TOKENS = {
    "blank": "%20",
    "garbage": "garbage",
    "cut": GOOD_TOKEN[:-1],
    "cut in front": GOOD_TOKEN[1:],
    "no checksum": GOOD_TOKEN.partition(".")[0],
    "another namespace": make_list_token("other", EVERYTHING.fingerprint(), Cursor(0, "x")),
    "other filters": make_list_token("default", "0" * 32, Cursor(0, "x")),
    "a row that is gone": GOOD_TOKEN,
    "another version": forged(version=2),
    "no cursor": forged(cursor=None),
    "texts for numbers": forged(cursor={"created_at": "0", "schedule_id": 1}),
    "the end of time": forged(cursor={"created_at": 2**63 - 1, "schedule_id": "x"}),
    "the end of time, other filters": forged(filter_fingerprint="x", cursor={"created_at": 2**62, "schedule_id": "x"}),
    "beyond the end of time": forged(cursor={"created_at": 2**70, "schedule_id": "x"}),
    "before all time": forged(filter_fingerprint="x", cursor={"created_at": -(2**62), "schedule_id": "x"}),
    "zero inside": forged(cursor={"created_at": 0, "schedule_id": "a\0b"}),
    "surrogate inside": forged(cursor={"created_at": 0, "schedule_id": "\ud800"}),
    "flag for a number": forged(cursor={"created_at": True, "schedule_id": "x"}),
    "accent": quote("é"),
    "not utf-8": "%ff",
    "zero": "%00",
    "pair": "9-",
    "long pair": "9" * 30 + "-" + "9" * 30,
    "another id": "7" + "Z" * 25,
    "ten kilobytes": "x" * 10_000,
}
# What is a token of one list may be one of another: it begins where nothing is, or at a place that never was.
LISTS = [
    "/api/schedules",
    "/api/runs",
    f"/api/schedules/{SCHEDULE}/runs",
    "/api/feed",
    f"/api/runs?schedule_id={SCHEDULE}&include=skips",
]


@on_the_strict_one
def test_a_token_that_no_page_gave_is_refused(wire: Wire) -> None:
    for path in LISTS:
        join = "&" if "?" in path else "?"
        answers = {name: wire.send("GET", f"{path}{join}next_page_token={token}") for name, token in TOKENS.items()}
        taken = {name for name, answer in answers.items() if answer.status == 200}
        assert complaints(answers.items(), range(200, 500)) == {}
        # Ids of runs are page tokens of runs: one that nobody has is a place between two that somebody has.
        assert taken <= ({"another id"} if "runs" in path else set())


PARAMETERS = {
    "/api/schedules": ["status", "workflow_type", "query", "owner", "source", "text", "label", "page_size", "nonsense"],
    "/api/runs": ["state", "origin", "schedule_id", "workflow_type", "assignee", "queue", "include", "page_size"],
    f"/api/schedules/{SCHEDULE}/history": ["limit", "after_sequence", "uid", "order"],
    f"/api/schedules/{SCHEDULE}/preview": ["n", "from"],
    f"/api/schedules/{SCHEDULE}/explain": ["at"],
    f"/api/schedules/{SCHEDULE}/revisions": ["page_size", "next_page_token"],
    f"/api/schedules/{SCHEDULE}/revisions/compare": ["from", "to"],
    "/api/feed": ["page_size", "after"],
    "/api/runs/{run_id}/events": ["limit", "after_sequence"],
    f"/schedules/{SCHEDULE}/runs": ["limit"],
}
SAID = [
    "",
    "%20",
    "%00",
    "%ff",
    "-1",
    "0",
    "1e9",
    "99999999999999999999",
    "NaN",
    "x" * 10_000,
    quote("é' OR 1=1 --"),
    "a=b=c",
]
SAID += [quote("Status = 'x' OR 1"), quote('"' * 500), quote("tenant = " + "9" * 1_000), "%5C" * 700, quote("'\0'")]


@on_the_strict_one
def test_a_hostile_parameter_is_never_our_defect(wire: Wire) -> None:
    answers = (
        (f"{path}?{name}={said[:40]}", wire.send("GET", f"{wire.path(path)}?{name}={said}"))
        for path, names in PARAMETERS.items()
        for name in names
        for said in SAID
    )
    assert complaints(answers, range(200, 500)) == {}


def test_a_thousand_parameters_are_read_in_time(wire: Wire) -> None:
    query = "&".join(f"label=a{n}={n}" for n in range(1_000))
    assert wire.send("GET", f"/api/schedules?{query}").complaint(range(200, 500)) is None
    assert wire.send("GET", "/api/runs?" + "state=held&" * 3_000).complaint(range(200, 500)) is None


# ── headers ──────────────────────────────────────────────────────────────────────────────────────────

HEADERS: dict[str, tuple[str, str | bytes]] = {
    "match: text": ("If-Match", '"one"'),
    "match: negative": ("If-Match", '"-1"'),
    "match: list": ("If-Match", '"1", "2"'),
    "match: digits": ("If-Match", "9" * 10_000),
    "match: other digits": ("If-Match", "\u0661"),
    "match: unquoted": ("If-Match", '"'),
    "match: empty": ("If-Match", ""),
    "key: long": ("Idempotency-Key", "k" * 10_000),
    "key: empty": ("Idempotency-Key", ""),
    "key: bytes": ("Idempotency-Key", b"\xff\xfe"),
    "key: tab": ("Idempotency-Key", "a\tb"),
    "namespace: long": ("X-Namespace", "n" * 10_000),
    "namespace: unknown": ("X-Namespace", "nobody"),
    "namespace: bytes": ("X-Namespace", b"\xff"),
    "namespace: quotes": ("X-Namespace", "' OR 1=1 --"),
    "token: none": ("Authorization", ""),
    "token: scheme": ("Authorization", "Basic YTpi"),
    "token: unknown": ("Authorization", "Bearer nobody"),
    "token: bytes": ("Authorization", b"Bearer \xff\xfe"),
    "token: long": ("Authorization", "Bearer " + "t" * 10_000),
    "token: signed by nobody": ("Authorization", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0."),
    "control plane": ("X-Durable-Workflow-Control-Plane-Version", "99" * 100),
    "type: garbage": ("Content-Type", b"\xff\xfe"),
    "type: long": ("Content-Type", "a/" + "b" * 10_000),
    "encoding: unknown": ("Content-Encoding", "snappy"),
    "zero": ("X-Odd", b"a\0b"),
    "huge": ("X-Odd", "x" * 200_000),
}


def test_a_hostile_header_is_refused_and_leaves_nothing(wire: Wire) -> None:
    path, before = f"/api/schedules/{SCHEDULE}", stored(wire)
    answers = ((case, wire.send("PATCH", path, dict([header]), b'{"note": "x"}')) for case, header in HEADERS.items())
    assert complaints(answers) == {}
    assert stored(wire) == before


def test_ten_thousand_headers_are_read_in_time(wire: Wire) -> None:
    many = {f"X-{number}": "x" for number in range(10_000)}
    assert wire.send("GET", "/api/schedules", many).complaint(range(200, 500)) is None


REQUEST_IDS = [b"a\r\nX-Evil: 1", b"a\nX-Evil: 1", b"a\rX-Evil: 1", b"a\r\n\r\nHTTP/1.1 200 OK", b"%0d%0aX-Evil:1"]
REQUEST_IDS += [b"\xff", b"r" * 10_000, b"a b", b""]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_request_id_adds_no_header_and_no_line(wire: Wire) -> None:
    for given in REQUEST_IDS:
        answer = wire.send("GET", "/livez", {"X-Request-Id": given})
        assert not [line for line in answer.headers if line.lower().startswith(b"x-evil")]
        ids = [line for line in answer.headers if line.lower().startswith(b"x-request-id:")]
        assert len(ids) <= 1
        assert all(len(line) <= 150 for line in ids)
        assert answer.complaint(range(200, 500)) is None


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_what_is_no_http_is_refused(wire: Wire) -> None:
    answers = (
        (repr(said[:20]), wire.say(said))
        for said in [b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"hello\r\n\r\n", b"\r\n" * 100 + b"GET\r\n\r\n"]
    )
    assert complaints(answers) == {}


def test_a_calendar_name_is_a_name_everywhere(wire: Wire) -> None:
    """A built-in rule calendar takes a country out of its name."""
    for name in ("holidays:", "holidays:..", "holidays:" + "US-" * 1_000, quote("holidays:\0"), quote("holidays:ÅÅ")):
        assert wire.send("GET", f"/api/calendars/{name}").complaint() is None
    assert wire.send("GET", f"/api/calendars/{CALENDAR}").status == 200
