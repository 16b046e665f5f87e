"""A worker that reports, from the signal to the run, and what is left when nobody hears it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, signals
from celery.app.task import Context
from celery.contrib.testing.worker import start_worker
from celery.exceptions import SoftTimeLimitExceeded

from horarium.celery import SkipEnded, install, report_to
from horarium.celery.spool_file import ANY_NAMESPACE, Destination, create
from horarium.errors import InvalidDefinition
from horarium.features.tenants import service as tenant_service
from horarium.testing import TestService

PATIENCE = 60
app = Celery("worker_side", broker="memory://", set_as_current=False)


def leave_the_log_as_it_is(**_: Any) -> None:
    """A worker that finds this does not change what every later test of the process logs."""


signals.setup_logging.connect(leave_the_log_as_it_is)


def _task(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Of this app and of no other in this process."""
    made: Callable[[Callable[..., Any]], Any] = app.task(shared=False, **options)
    return made


@_task(name="add")
def add(first: int, second: int) -> int:
    return first + second


@_task(name="boom")
def boom() -> None:
    raise ValueError("no luck")


@_task(name="late")
def late() -> None:
    raise SoftTimeLimitExceeded


@_task(name="again", bind=True, max_retries=1, default_retry_delay=0)
def again(self: Any) -> int:
    if self.request.retries == 0:
        raise self.retry(countdown=0)
    return int(self.request.retries)


begun: list[str] = []


@_task(name="careful", base=SkipEnded)
def careful(word: str) -> None:
    begun.append(word)


def headers(horarium: TestService, schedule_id: str, **changed: Any) -> dict[str, Any]:
    """As they come with the message of a new run."""
    action = {"kind": "http", "url": "https://target.test/hook"}
    once = {"max_retries": 0}
    horarium.create(schedule_id=schedule_id, cron_expressions=["0 0 1 1 *"], action=action, retry_policy=once)
    horarium.http().post(f"/api/schedules/{schedule_id}/trigger").raise_for_status()
    horarium.settle()
    sent = horarium.launcher.deliveries[-1]
    told = {"report_token": sent.report_token, "report_url": sent.report_url, "nominal": "2026-03-01T00:00:00Z"}
    return {"horarium": {"run_id": sent.run_id, "namespace": "default", "attempt": 0, **told, **changed}}


def nothing() -> None:
    pass


def listen(*told: str, spool: Path) -> None:
    """With patience for a machine that is busy."""
    report_to(*told, app=app, spool=spool, flush_seconds=PATIENCE)


def flush() -> None:
    """Until all that can be sent has been."""
    assert install.LISTENER.reporter is not None
    install.LISTENER.reporter.stop()


def state(horarium: TestService, schedule_id: str) -> str:
    [run] = horarium.runs(schedule_id)
    return run.state.value


def test_a_worker_says_what_becomes_of_its_tasks(horarium: TestService, url: str, spool: Path) -> None:
    listen(url, spool=spool)
    arguments = {"add": [1, 2]}
    names = ("add", "boom", "late", "again", "ghost")
    for name in names:
        app.send_task(name, args=arguments.get(name, ()), headers=headers(horarium, name))
    through = threading.Event()

    def done(sender: Any = None, **_: Any) -> None:
        if sender.name == "again":
            through.set()

    signals.task_success.connect(done)
    with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=PATIENCE):
        assert through.wait(PATIENCE)
    flush()
    ended = {name: run for name in names for run in horarium.runs(name)}
    told = {name: (run.state.value, run.result, run.error, run.error_class) for name, run in ended.items()}
    assert told == {
        "add": ("succeeded", 3, None, None),
        "boom": ("failed", None, "ValueError: no luck", "ValueError"),
        "late": ("timed_out", None, "SoftTimeLimitExceeded: SoftTimeLimitExceeded()", "timeout"),
        "again": ("succeeded", 1, None, None),
        "ghost": ("failed", None, "NotRegistered: this worker has no task 'ghost'", "NotRegistered"),
    }
    assert {name for name, run in ended.items() if run.started_at is not None} == {"add", "boom", "late", "again"}
    assert list(spool.iterdir()) == []


def test_what_the_main_process_is_told_is_reported_too(horarium: TestService, url: str, spool: Path) -> None:
    listen(url, spool=spool)

    consumer = type("Consumer", (), {"app": app})()
    messages: list[str] = []

    class Message:
        def __init__(self, schedule_id: str) -> None:
            self.headers = {"id": schedule_id, **headers(horarium, schedule_id)}
            self.id, self.request_dict = schedule_id, self.headers
            messages.append(schedule_id)

    for name, told in {"revoked": {}, "expired": {"expired": True}, "terminated": {"terminated": True}}.items():
        signals.task_revoked.send(sender=add, request=Context(Message(name).headers), **told)
    signals.task_rejected.send(sender=consumer, message=Message("unreadable"), exc=None)
    signals.task_internal_error.send(sender=add, request=Message("broken").headers, exception=OSError("backend"))
    limited = Message("limited")
    signals.task_received.send(sender=consumer, request=limited)
    signals.task_failure.send(sender=add, task_id="limited", exception=ValueError("of a child"))
    flush()
    assert {name: (run.state.value, run.error) for name in messages for run in horarium.runs(name)} == {
        "revoked": ("cancelled", "the task was revoked"),
        "expired": ("timed_out", "the task expired before it began"),
        "terminated": ("cancelled", "the task was terminated"),
        "unreadable": ("failed", "the worker could not read the message"),
        "broken": ("failed", "OSError: backend"),
        "limited": ("failed", "ValueError: of a child"),
    }


def test_reports_wait_on_file_until_the_service_is_there(horarium: TestService, url: str, spool: Path) -> None:
    listen("http://127.0.0.1:9", spool=spool)
    add.apply((1, 2), headers=headers(horarium, "waiting"))
    flush()
    [file] = spool.iterdir()
    assert state(horarium, "waiting") == "queued"
    # A restart, with another address: what waits for the first one goes on waiting.
    listen(url, spool=spool)
    boom.apply(headers=headers(horarium, "elsewhere"))
    flush()
    assert (state(horarium, "elsewhere"), list(spool.iterdir())) == ("failed", [file])
    # As if the first one had come back: what a dead worker left behind is sent by a living one.
    _, _, lines = file.read_bytes().split(b"\n", 2)
    file.unlink()
    create(spool, Destination(url, "default"), lines).forget()
    assert install.LISTENER.reporter is not None
    install.LISTENER.reporter.start()
    flush()
    assert (state(horarium, "waiting"), list(spool.iterdir())) == ("succeeded", [])


def test_runs_of_any_number_of_namespaces_wait_together(
    horarium: TestService, spool: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The token of a run says where it is."""
    listen("http://127.0.0.1:9", spool=spool)
    sent = headers(horarium, "of-many")["horarium"]
    for number in range(30):
        add.apply((1, 2), headers={"horarium": {**sent, "namespace": f"tenant-{number}"}})
    flush()
    [file] = spool.iterdir()
    assert (file.read_bytes().count(b"succeeded"), "is lost" in caplog.text) == (30, False)


def test_what_was_written_without_a_token_is_sent_without_one(horarium: TestService, url: str, spool: Path) -> None:
    listen("http://127.0.0.1:9", spool=spool)
    add.apply((1, 2), headers=headers(horarium, "before-the-token"))
    flush()
    [file] = spool.iterdir()
    _, _, lines = file.read_bytes().split(b"\n", 2)
    file.unlink()
    create(spool, Destination(url, ANY_NAMESPACE), lines).forget()
    listen(url, "hor_of_another_namespace", spool=spool)
    assert install.LISTENER.reporter is not None
    install.LISTENER.reporter.start()
    flush()
    assert state(horarium, "before-the-token") == "succeeded"


def test_the_address_comes_with_the_run_where_none_is_said(
    horarium: TestService, url: str, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORARIUM_TOKEN", "for another server")
    listen(spool=spool)
    sent = headers(horarium, "addressed")
    run_id = sent["horarium"]["run_id"]
    sent["horarium"]["report_url"] = f"{url}/api/runs/{run_id}/report"
    add.apply((1, 2), headers=sent)
    flush()
    assert state(horarium, "addressed") == "succeeded"


def test_a_worker_may_have_a_token_of_its_own(horarium: TestService, url: str, spool: Path) -> None:
    issued = tenant_service.issue_token(
        horarium.resources, horarium.caller, name="celery", role="agent", subject="celery"
    )
    listen(url, issued.secret, spool=spool)
    add.apply((1, 2), headers=headers(horarium, "named"))
    flush()
    assert state(horarium, "named") == "succeeded"
    events = horarium.http().get(f"/api/runs/{horarium.runs('named')[0].run_id}/events").json()["events"]
    assert {event["payload"].get("principal") for event in events} >= {"celery"}


def test_a_token_that_is_not_good_loses_nothing(horarium: TestService, url: str, spool: Path) -> None:
    listen(url, "hor_nobody", spool=spool)
    add.apply((1, 2), headers=headers(horarium, "misnamed"))
    flush()
    assert (state(horarium, "misnamed"), len(list(spool.iterdir()))) == ("queued", 1)
    listen(url, spool=spool)
    assert install.LISTENER.reporter is not None
    install.LISTENER.reporter.start()
    flush()
    assert (state(horarium, "misnamed"), list(spool.iterdir())) == ("succeeded", [])


def test_a_second_delivery_of_what_has_ended_can_be_left_undone(horarium: TestService, url: str, spool: Path) -> None:
    begun.clear()
    listen(url, spool=spool)
    sent = headers(horarium, "careful")
    careful.apply(("first",), headers=sent)
    flush()
    assert state(horarium, "careful") == "succeeded"
    careful.apply(("second",), headers=sent)
    flush()
    careful.apply(("no run",))
    listen("http://127.0.0.1:9", spool=spool)
    careful.apply(("nobody to ask",), headers=sent)
    assert begun == ["first", "no run", "nobody to ask"]
    assert state(horarium, "careful") == "succeeded"


@pytest.mark.parametrize("given", [None, {}, {"horarium": 3}, {"horarium": {"run_id": "x"}}, {"horarium": None}])
def test_tasks_that_are_no_runs_leave_nothing(spool: Path, given: Any) -> None:
    listen("http://127.0.0.1:9", spool=spool)
    assert add.apply((1, 2), headers=given).get() == 3
    other = Celery("other", broker="memory://", set_as_current=False)
    told = {"run_id": "r", "namespace": "n", "attempt": 0, "nominal": "x", "report_token": "t"}
    other.task(name="far")(nothing).apply(headers={"horarium": told})
    assert not spool.exists()


def test_no_task_fails_for_want_of_a_report(spool: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "spool").write_text("no directory")
    listen("http://127.0.0.1:9", spool=spool)
    told = {"run_id": "r", "namespace": "n", "attempt": 0, "nominal": "x", "report_token": "t"}
    assert add.apply((1, 2), headers={"horarium": told}).get() == 3
    assert "the report on the run r is lost" in caplog.text


@pytest.mark.parametrize("wrong", [{"url": "ftp://x"}, {"url": "https://x?y"}, {"url": "https://x", "token": "a\nb"}])
def test_what_would_be_wrong_later_is_told_at_once(spool: Path, wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidDefinition):
        report_to(wrong["url"], wrong.get("token"), spool=spool)


FORKED = """
import os, sys, threading
from celery import Celery, signals
from horarium.celery import report_to, install

heavy = [name for name in ("sqlalchemy", "fastapi", "starlette", "alembic") if name in sys.modules]
assert not heavy, heavy
app = Celery("forked", broker="memory://")
def t(): pass
app.task(name="t")(t)
report_to("http://127.0.0.1:9", app=app, spool=sys.argv[1], flush_seconds=0)
told = {"run_id": "r", "namespace": "n", "attempt": 0, "nominal": "x", "report_token": "t"}

def work():
    app.tasks["t"].apply(headers={"horarium": told})

class Worker:
    pool_cls = "prefork"

signals.worker_init.send(sender=Worker())
work()
assert threading.active_count() == 1, threading.enumerate()
child = os.fork()
if child == 0:
    assert not install.LISTENER.reporter.leaves
    work()
    assert threading.active_count() == 2
    os.kill(os.getpid(), 9)
assert os.waitpid(child, 0)[1] == 9
work()
print(len(os.listdir(sys.argv[1])))
"""


def test_after_a_fork_each_process_has_its_own_and_a_killed_one_loses_nothing(tmp_path: Path) -> None:
    """In a process of its own, which imports nothing of the server."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORKED), str(tmp_path)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    reports = [line for file in tmp_path.iterdir() for line in file.read_text().splitlines()[2:]]
    assert [line[0] for line in sorted(reports)] == ["F"] * 3 + ["P"] * 3
