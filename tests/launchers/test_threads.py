"""Threads are used again, none waits for another, and no call is lost between one that ends and one that is chosen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from horarium.platform.threads import ReusedThreads

PATIENCE = 30.0
"""Seconds after which a test gives up; nothing here takes a thousandth of it."""


def ident_of(threads: ReusedThreads) -> threading.Thread:
    found: SimpleQueue[threading.Thread] = SimpleQueue()
    threads.start(lambda: found.put(threading.current_thread()))
    return found.get(timeout=PATIENCE)


def until(met: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < limit
        time.sleep(0.001)


def test_an_idle_thread_is_used_again_and_is_a_daemon() -> None:
    threads = ReusedThreads("t")
    first = ident_of(threads)
    until(lambda: threads.idle == 1)
    assert ident_of(threads) is first
    assert first.daemon
    threads.close()


def test_a_call_that_never_ends_holds_up_nobody() -> None:
    threads = ReusedThreads("t")
    held, went_on = threading.Event(), threading.Event()
    threads.start(lambda: held.wait(PATIENCE))
    threads.start(went_on.set)
    assert went_on.wait(PATIENCE)
    held.set()
    threads.close()


def test_an_idle_thread_ends_after_a_while() -> None:
    threads = ReusedThreads("t", idle_seconds=0.01)
    thread = ident_of(threads)
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert threads.idle == 0


def test_closing_ends_idle_threads_and_later_calls_are_still_made() -> None:
    threads = ReusedThreads("t")
    thread = ident_of(threads)
    until(lambda: threads.idle == 1)
    threads.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    later = ident_of(threads)
    later.join(PATIENCE)
    assert not later.is_alive()


def test_no_call_is_lost_while_threads_come_and_go() -> None:
    threads = ReusedThreads("t", idle_seconds=0.0002)
    done: SimpleQueue[int] = SimpleQueue()
    for n in range(2_000):
        threads.start(lambda n=n: done.put(n))
        if n % 3 == 0:
            time.sleep(0.0002)
    assert sorted(done.get(timeout=PATIENCE) for _ in range(2_000)) == list(range(2_000))


def test_an_idle_thread_keeps_nothing_of_its_last_call_alive() -> None:
    import weakref

    class Thing:
        pass

    threads = ReusedThreads("t", idle_seconds=3_600)
    thing = Thing()
    gone = weakref.ref(thing)
    threads.start(lambda kept=thing: None)
    del thing
    until(lambda: gone() is None and threads.idle == 1)
    threads.close()


def test_a_system_without_threads_says_so_and_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    with pytest.raises(RuntimeError, match="can't start"):
        ReusedThreads("t").start(lambda: None)
