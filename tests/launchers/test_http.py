"""An HTTP launch: what is sent, what is signed, and what each way of going wrong is called."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from launchers.far_ends import KEY, NOW, STEP, FixedClock, HttpFarEnd, Received, answer, request_for
from standardwebhooks import Webhook

from horarium.core.lifecycle.outcome import (
    Accepted,
    Busy,
    Finished,
    Outcome,
    Refused,
    RunCancelled,
    RunFailed,
    RunTimedOut,
    Unknown,
    Unreachable,
)
from horarium.instant import SECOND, to_datetime
from horarium.launchers.http import HttpLauncher, not_done
from horarium.launchers.ssrf import AddressGuard, AddressPolicy

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER_SECRET = "whsec_" + "QUJD" * 8


def limited(seconds: float | None) -> Busy:
    return Busy(seconds, sent=True, error_class="rate_limit")


def broken_off(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: 100\r\n\r\nhalf".encode()


def launch(
    target: dict[str, Any], answers: dict[str, bytes] | None = None, *, secrets: Any = None, **changes: Any
) -> tuple[Outcome, list[Received]]:
    """`target["path"]` stands for the URL of the far end."""

    async def run() -> tuple[Outcome, list[Received]]:
        async with HttpFarEnd(answers or {"/": answer("200 OK")}) as far:
            launcher = HttpLauncher(
                FixedClock(), guard=AddressGuard(AddressPolicy(allow_loopback=True)), secrets=secrets
            )
            given = {"url": far.url(target.pop("path", "/")), **target}
            outcome = await launcher.launch(request_for("http", given, **changes))
            await launcher.close()
            return outcome, far.received

    return asyncio.run(run())


def test_a_run_is_posted_as_a_structured_cloudevent() -> None:
    _, [received] = launch(
        {}, inputs={"report": "日次"}, attempt=1, key=f"{KEY}:1", traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    )
    assert received.method == "POST"
    assert received.headers["content-type"] == "application/cloudevents+json"
    assert received.headers["idempotency-key"] == f"{KEY}:1"
    assert received.headers["traceparent"].startswith("00-aaaa")
    event = received.event
    assert {name: event[name] for name in ("specversion", "id", "source", "type", "subject", "time")} == {
        "specversion": "1.0",
        "id": f"{KEY}:1",
        "source": "urn:horarium",
        "type": "dev.horarium.run.due.v1",
        "subject": "default/nightly",
        "time": "2026-03-08T07:00:00Z",
    }
    assert event["data"]["inputs"] == {"report": "日次"}
    assert event["data"]["attempt"] == 1
    assert event["data"]["due"] == "2026-03-08T07:00:02Z"


def test_a_step_is_told_its_place_and_its_terms() -> None:
    _, [received] = launch({}, **STEP)
    told = {name: value for name, value in STEP.items() if name != "terms"} | {
        "approval_mode": "on_block",
        "gates": ["publish", "spend"],
        "approved_gates": ["spend"],
        "limits": {"cost": 0.5},
        "allow_tools": ["search"],
        "global_model_id": "m",
    }
    assert {name: received.event["data"][name] for name in told} == told
    _, [bare] = launch({"method": "GET"}, **STEP)
    assert (bare.headers["ce-nodeid"], bare.headers["ce-rootrunid"]) == ("send", "r")


def test_a_redelivery_sends_the_same_bytes() -> None:
    _, [first] = launch({}, inputs={"a": 1})
    _, [second] = launch({}, inputs={"a": 1})
    assert first.body == second.body


REPORT: dict[str, Any] = {"report_url": "https://h.example/api/runs/run-1/report", "report_token": "rt.ünsafe\r\n"}


def test_an_event_says_where_and_by_what_right_its_attempt_may_report() -> None:
    _, [received] = launch({}, attempt=2, **REPORT)
    _, [again] = launch({}, attempt=2, **REPORT)
    told = {name: received.event["data"][name] for name in ("attempt", "report_url", "report_token")}
    assert told == {"attempt": 2, **REPORT}
    assert again.body == received.body
    assert received.headers["idempotency-key"] == KEY


def test_without_a_place_to_report_to_there_is_null() -> None:
    _, [received] = launch({})
    told = {name: received.event["data"][name] for name in ("attempt", "report_url", "report_token")}
    assert told == {"attempt": 0, "report_url": None, "report_token": None}


def test_an_event_in_headers_says_the_same() -> None:
    _, [received] = launch({"method": "GET"}, attempt=2, **REPORT)
    assert received.headers["ce-attempt"] == "2"
    assert received.headers["ce-reporturl"] == REPORT["report_url"]
    assert received.headers["ce-reporttoken"] == "rt.%C3%BCnsafe%0D%0A"
    _, [bare] = launch({"method": "GET"})
    assert bare.headers["ce-attempt"] == "0"
    assert not {"ce-reporturl", "ce-reporttoken"} & set(bare.headers)


@pytest.mark.parametrize("status", ["400 Bad Request", "500 Oops", "502 Gateway"])
def test_a_token_that_the_target_sends_back_stands_in_no_error(status: str) -> None:
    outcome, _ = launch({}, {"/": answer(status, "you sent rt.secret to me")}, report_token="rt.secret")
    assert isinstance(outcome, Refused | RunFailed | Unknown)
    assert outcome.error == f"HTTP {status[:3]}: you sent … to me"


def test_a_request_shows_no_token() -> None:
    assert "rt.secret" not in repr(request_for("http", report_token="rt.secret"))


@pytest.mark.parametrize("method", ["get", "DELETE", "HEAD"])
def test_a_method_without_a_body_carries_the_event_in_headers(method: str) -> None:
    _, [received] = launch({"method": method}, namespace="büro", schedule_id=None, run_id="r 1")
    assert received.method == method.upper()
    assert received.body == b""
    assert received.headers["ce-id"] == KEY
    assert received.headers["ce-subject"] == "b%C3%BCro/runs/r%201"
    assert "content-type" not in received.headers


def test_a_key_that_no_header_can_hold_is_percent_encoded() -> None:
    _, [received] = launch({}, key="größe 1\r\nX: y")
    assert received.headers["idempotency-key"] == "gr%C3%B6%C3%9Fe%201%0D%0AX:%20y"


def test_headers_of_the_action_are_sent() -> None:
    _, [received] = launch(
        {"headers": {"Authorization": "Bearer x", "User-Agent": "mine", "Content-Type": "application/json"}}
    )
    assert received.headers["content-type"] == "application/json"
    assert received.headers["authorization"] == "Bearer x"
    assert received.headers["user-agent"] == "mine"


def test_a_named_secret_signs_as_standard_webhooks_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    _, [received] = launch({"secret": "ours"}, secrets={"ours": SECRET}, inputs={"ü": 1})
    assert received.headers["webhook-id"] == KEY
    assert received.headers["webhook-timestamp"] == str(NOW // SECOND)
    # The verifier's own look at the clock is left out: the time of this test is fixed.
    monkeypatch.setattr(Webhook, "_Webhook__verify_timestamp", lambda *_: to_datetime(NOW))
    assert Webhook(SECRET).verify(received.body, received.headers)["data"]["inputs"] == {"ü": 1}


def test_two_secrets_under_one_name_sign_side_by_side() -> None:
    _, [received] = launch({"secret": "ours"}, secrets={"ours": [SECRET, OTHER_SECRET]})
    assert len(received.headers["webhook-signature"].split(" ")) == 2


def test_an_unknown_secret_sends_nothing() -> None:
    outcome, received = launch({"secret": "theirs"}, secrets={"ours": SECRET})
    assert outcome == Refused("the secret 'theirs' is not configured")
    assert received == []


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_%%%"])
def test_a_bad_secret_is_refused_at_once_and_not_shown(secret: str) -> None:
    with pytest.raises(ValueError, match="the secret 'ours' must be a base64"):
        HttpLauncher(FixedClock(), secrets={"ours": secret})


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (answer("200 OK", {"a": [1]}), Finished({"a": [1]})),
        (answer("200 OK", "plain"), Finished("plain")),
        (answer("200 OK", "123"), Finished("123")),
        (answer("204 No Content"), Finished(None)),
        (answer("200 OK", b'{"a":1}', content_type="application/octet-stream"), Finished({"a": 1})),
        (answer("200 OK", b"{broken", content_type="application/json"), Finished("{broken")),
        (answer("200 OK", b'"\\u0000"', content_type="application/json"), Finished('"\\u0000"')),
        (
            answer("200 OK", b"\x1f\x8b", content_encoding="gzip"),
            Finished({"undecoded": "gzip", "size_bytes": 2}),
        ),
        (answer("202 Accepted", {"reference": "job-7", "id": "x"}), Accepted("job-7")),
        (answer("202 Accepted", {"id": 7}), Accepted("7")),
        (answer("202 Accepted", {"id": True}, location="/jobs/8"), Accepted("/jobs/8")),
        (answer("202 Accepted"), Accepted(None)),
        (answer("301 Moved", location="http://169.254.169.254/"), Refused),
        (answer("400 Bad Request", "no such\nfield"), Refused("HTTP 400: no such field")),
        (answer("404 Not Found"), Refused("HTTP 404")),
        (answer("408 Timeout"), Unreachable("HTTP 408", sent=True)),
        (answer("425 Too Early"), Unreachable("HTTP 425", sent=True)),
        (answer("429 Slow", retry_after="7"), limited(7.0)),
        (answer("429 Slow", retry_after="Sun, 08 Mar 2026 07:00:30 GMT"), limited(30.0)),
        (answer("429 Slow", retry_after="Sun, 08 Mar 2026 06:00:00 -0000"), limited(0.0)),
        (answer("429 Slow", retry_after="soon"), limited(None)),
        (answer("429 Slow", retry_after="9" * 400), limited(86_400.0)),
        (answer("429 Slow"), limited(None)),
        (answer("503 Full", retry_after="2"), Busy(2.0, sent=True)),
        (answer("503 Full", retry_after="soon"), Busy(None, sent=True)),
        (answer("503 Full"), Unknown("HTTP 503")),
        (answer("502 Gateway", "upstream is gone"), Unknown("HTTP 502: upstream is gone")),
        (answer("504 Gateway", retry_after="2"), Unknown("HTTP 504")),
        (answer("500 Oops", "boom"), RunFailed("HTTP 500: boom", "provider_error")),
        (answer("500 Oops", retry_after="2"), RunFailed("HTTP 500", "provider_error")),
        (answer("501 Not Implemented"), RunFailed("HTTP 501", "provider_error")),
        (answer("507 Full"), RunFailed("HTTP 507", "provider_error")),
        (answer("799 Odd"), RunFailed("HTTP 799", "provider_error")),
        # The status says what became of the run, although its body breaks off.
        (broken_off("400 Bad Request"), Refused("HTTP 400")),
        (broken_off("500 Oops"), RunFailed("HTTP 500", "provider_error")),
        (broken_off("200 OK"), Unknown),
        (broken_off("202 Accepted"), Unknown),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n", Unknown),
        (b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n", Unknown),
        (b"200 OK\r\n\r\n", Unknown),
        (b"", Unknown),
    ],
)
def test_an_answer_means(raw: bytes, expected: Any) -> None:
    outcome, _ = launch({}, {"/": raw})
    assert isinstance(outcome, expected) if isinstance(expected, type) else outcome == expected


def test_every_status_has_a_meaning_and_none_raises() -> None:
    for status in range(400, 1_000):
        for wish in (None, "2"):
            outcome = not_done(status, "said", wish, NOW)
            assert isinstance(outcome, Refused | Busy | Unreachable | Unknown | RunFailed)
            assert isinstance(outcome, Refused) is (status < 500 and status not in (408, 425, 429)), status


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/hang-up", Unknown), ("/half", Unknown), ("/slow", RunTimedOut)],
    ids=["hangs up before the answer", "hangs up within the answer", "does not answer"],
)
def test_what_goes_wrong_after_sending_may_have_been_done(path: str, expected: type) -> None:
    outcome, _ = launch({"path": path}, seconds=1 if path == "/slow" else 20)
    assert isinstance(outcome, expected)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://no-such-host.invalid/"], ids=["closed port", "no name"])
def test_what_goes_wrong_before_sending_is_unreachable(url: str) -> None:
    outcome, received = launch({"url": url})
    assert isinstance(outcome, Unreachable)
    assert received == []


def test_a_name_server_that_hangs_is_unreachable_at_the_deadline() -> None:
    async def hang(_host: str, _port: int, _group: str) -> list[str]:
        await asyncio.sleep(30)
        return []

    async def run() -> Outcome:
        launcher = HttpLauncher(FixedClock(), guard=AddressGuard(resolver=hang))
        return await launcher.launch(request_for("http", {"url": "http://a.example/"}, seconds=0.2))

    assert asyncio.run(run()) == Unreachable("no response before the deadline")


def test_a_cancelled_request_says_whether_the_target_may_have_acted() -> None:
    async def run() -> Outcome:
        async with HttpFarEnd() as far:
            launcher = HttpLauncher(FixedClock(), guard=AddressGuard(AddressPolicy(allow_loopback=True)))
            cancelled = asyncio.Event()
            asyncio.get_running_loop().call_later(0.2, cancelled.set)
            request = request_for("http", {"url": far.url("/slow")}, cancelled=cancelled)
            outcome = await launcher.launch(request)
            await launcher.close()
            return outcome

    outcome = asyncio.run(run())
    assert isinstance(outcome, RunCancelled)
    assert "may have processed" in outcome.error


@pytest.mark.parametrize(
    ("target", "part"),
    [
        ({"url": None}, "url must be a string"),
        ({"url": "http://h/" + "a" * 2_048}, "url must be a string"),
        ({"url": "file:///etc/passwd"}, "must be http or https"),
        ({"url": "http://"}, "no host"),
        ({"url": "/relative"}, "must be http or https"),
        ({"url": "http://user:pass@127.0.0.1/"}, "credentials"),
        ({"url": "http://127.0.0.1:99999/"}, "url"),
        ({"method": "TRACE"}, "method must be one of"),
        ({"method": 7}, "method must be one of"),
        ({"headers": ["a"]}, "headers must be an object"),
        ({"headers": {"Host": "evil"}}, "Host is set by the launcher"),
        ({"headers": {"ce-id": "x"}}, "ce-id is set by the launcher"),
        ({"headers": {"Webhook-Id": "x"}}, "Webhook-Id is set by the launcher"),
        ({"headers": {"a b": "x"}}, "not a valid header name"),
        ({"headers": {"X": "a\r\nb"}}, "printable ASCII"),
        ({"headers": {"X": 1}}, "printable ASCII"),
        ({"headers": {"X": "x" * 8_193}}, "printable ASCII"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_action_that_cannot_be_sent_is_refused(target: dict[str, Any], part: str) -> None:
    outcome, received = launch(target)
    assert isinstance(outcome, Refused)
    assert part in outcome.error
    assert received == []


def test_redirects_are_not_followed() -> None:
    outcome, received = launch({}, {"/": answer("307 Elsewhere", location="/other"), "/other": answer("200 OK")})
    assert isinstance(outcome, Refused)
    assert [each.path for each in received] == ["/"]


def test_cookies_of_one_run_are_not_sent_with_the_next() -> None:
    async def run() -> list[Received]:
        async with HttpFarEnd({"/": answer("200 OK", set_cookie="session=tenant-a; Path=/")}) as far:
            launcher = HttpLauncher(FixedClock(), guard=AddressGuard(AddressPolicy(allow_loopback=True)))
            for _ in range(2):
                await launcher.launch(request_for("http", {"url": far.url("/")}))
            await launcher.close()
            return far.received

    assert all("cookie" not in each.headers for each in asyncio.run(run()))


def test_proxy_variables_of_the_environment_are_not_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    outcome, _ = launch({})
    assert outcome == Finished(None)


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=hooks.example"
    )
    subprocess.run(
        [*command.split(), "-addext", "subjectAltName=DNS:hooks.example", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder


@pytest.mark.parametrize(
    ("host", "expected"),
    [("hooks.example", Finished(None)), ("other.example", Unreachable)],
    ids=["its name", "another"],
)
def test_tls_is_verified_for_the_name_although_the_address_is_dialled(
    certificate: Path, host: str, expected: Any
) -> None:
    async def to_loopback(_host: str, _port: int, _group: str) -> list[str]:
        return ["127.0.0.1"]

    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    trusting = ssl.create_default_context(cafile=str(certificate / "cert.pem"))

    async def run() -> tuple[Outcome, list[Received]]:
        async with HttpFarEnd({"/": answer("200 OK")}, tls=server) as far:
            guard = AddressGuard(AddressPolicy(allow_loopback=True), to_loopback)
            launcher = HttpLauncher(FixedClock(), guard=guard, tls=trusting)
            outcome = await launcher.launch(request_for("http", {"url": far.url("/", host)}))
            await launcher.close()
            return outcome, far.received

    outcome, received = asyncio.run(run())
    assert isinstance(outcome, expected) if isinstance(expected, type) else outcome == expected
    assert all(each.headers["host"].startswith(f"{host}:") for each in received)
