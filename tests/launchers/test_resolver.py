"""Look-ups end in time, are made once, and no namespace with slow names holds up another."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest
from launchers.far_ends import FixedClock, HttpFarEnd, answer, request_for
from launchers.names import FOUND, PATIENCE, Names, Ticking, patient, until

from horarium.core.lifecycle.outcome import Finished, Outcome, Unreachable
from horarium.launchers.http import HttpLauncher
from horarium.launchers.resolver import MAX_CACHED, SystemResolver, numeric_address
from horarium.launchers.ssrf import AddressGuard, AddressPolicy, Unresolved


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def test_a_name_is_looked_up_by_the_system_in_its_order() -> None:
    names = Names()
    assert run(patient(names)("a.example", 80)) == FOUND
    assert names.asked == ["a.example"]


def test_the_look_up_is_made_in_a_daemon_thread_of_our_own() -> None:
    seen: list[threading.Thread] = []

    def note(*_: object, **__: object) -> Sequence[tuple[Any, ...]]:
        seen.append(threading.current_thread())
        return []

    run(patient(note)("a.example", 80))
    assert [(each.name, each.daemon) for each in seen] == [("horarium-resolver", True)]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("::ffff:127.0.0.1", "::ffff:7f00:1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("", None),
        ("a.example", None),
        ("3com.example", None),
        ("127.0.0.1 a", None),
        ("1.2.3.4.5", None),
        ("256.1.1.1", None),
        ("dead:beef", None),
        ("１２７.0.0.1", None),
    ],
)
def test_a_host_that_is_an_address_needs_no_look_up(host: str, expected: str | None) -> None:
    assert numeric_address(host) == expected
    names = Names()
    if expected is not None:
        assert run(patient(names)(host, 80)) == (expected,)
        assert names.asked == []


def test_many_who_ask_for_one_host_are_answered_by_one_look_up() -> None:
    names = Names(held={"a.example"})

    async def ask() -> list[Sequence[str]]:
        resolver = patient(names)
        askers = [asyncio.ensure_future(resolver("a.example", 80, f"group-{n % 3}")) for n in range(30)]
        await until(lambda: names.asked == ["a.example"])
        names.let_go("a.example")
        return await asyncio.gather(*askers)

    assert run(ask()) == [FOUND] * 30
    assert names.asked == ["a.example"]


def test_an_answer_is_kept_for_some_seconds_and_no_longer() -> None:
    names, clock = Names(), Ticking()

    async def ask() -> None:
        resolver = patient(names, clock=clock, kept_seconds=10)
        for seconds, asked in ((0, 1), (9.9, 1), (10, 2), (19.9, 2), (20, 3)):
            clock.seconds = seconds
            assert await resolver("a.example", 80) == FOUND
            assert len(names.asked) == asked

    run(ask())


def test_no_more_answers_are_kept_than_a_bound() -> None:
    async def ask() -> int:
        resolver = patient(Names(), clock=Ticking())
        for n in range(MAX_CACHED + 10):
            await resolver(f"host-{n}.example", 80)
        return len(resolver._kept)

    assert run(ask()) == MAX_CACHED


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (socket.gaierror(socket.EAI_NONAME, "no such name"), socket.gaierror),
        (UnicodeError("label too long"), UnicodeError),
        (ValueError("embedded null"), OSError),
        (StopIteration(), OSError),
        (SystemExit(1), OSError),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_a_failure_reaches_the_asker_and_is_not_kept(wrong: BaseException, expected: type[Exception]) -> None:
    names = Names(wrong={"a.example": wrong})

    async def ask() -> None:
        resolver = patient(names)
        with pytest.raises(expected):
            await resolver("a.example", 80)
        names.wrong.clear()
        assert await resolver("a.example", 80) == FOUND
        await until(lambda: resolver.busy == {})

    run(ask())


def test_a_slow_name_is_given_up_and_counts_until_the_system_ends_it() -> None:
    names = Names(held={"slow.example"})

    async def ask() -> None:
        resolver = SystemResolver(getaddrinfo=names, limit_seconds=0.02)
        with pytest.raises(TimeoutError, match=r"took longer than 0\.02 s"):
            await resolver("slow.example", 80, "tenant")
        assert resolver.busy == {"tenant": 1}
        with pytest.raises(TimeoutError):
            await resolver("slow.example", 80, "tenant")
        assert resolver.busy == {"tenant": 1}, "the second asker joins the look-up that hangs"
        names.let_go("slow.example")
        await until(lambda: resolver.busy == {})
        assert await resolver("slow.example", 80) == FOUND
        assert names.asked == ["slow.example"], "what was found late is kept too"

    run(ask())


def test_a_look_up_that_hangs_for_long_is_taken_for_dead_and_begun_anew() -> None:
    names, clock = Names(held={"a.example"}), Ticking()

    async def ask() -> None:
        resolver = patient(names, clock=clock)
        first = asyncio.ensure_future(resolver("a.example", 80, "tenant"))
        await until(lambda: len(names.asked) == 1)
        clock.seconds = 12.5 * PATIENCE
        second = asyncio.ensure_future(resolver("a.example", 80, "tenant"))
        await until(lambda: len(names.asked) == 2)
        assert resolver.busy == {"tenant": 2}
        names.let_go("a.example")
        assert [await first, await second] == [FOUND, FOUND]
        await until(lambda: resolver.busy == {})

    run(ask())


def test_a_namespace_full_of_slow_names_holds_up_only_itself() -> None:
    slow = [f"{n}.slow.example" for n in range(20)]
    names = Names(held=set(slow))

    async def ask() -> None:
        resolver = patient(names, threads=8)
        hostile = [asyncio.ensure_future(resolver(host, 80, "hostile")) for host in slow]
        await until(lambda: len(names.asked) == 2)
        assert resolver.busy == {"hostile": 2}
        assert resolver.waiting == {"hostile": 18}
        for n in range(20):
            assert await resolver(f"{n}.quick.example", 80, "other") == FOUND
        assert set(names.asked[:2]) == set(slow[:2])
        assert names.asked[2:] == [f"{n}.quick.example" for n in range(20)]
        names.let_go(*slow)
        assert await asyncio.gather(*hostile) == [FOUND] * 20
        assert resolver.waiting == {}
        await until(lambda: resolver.busy == {})

    run(ask())


def test_a_host_that_a_blocked_namespace_waits_for_is_looked_up_for_another_and_serves_both() -> None:
    names = Names(held={"slow.example"})

    async def ask() -> None:
        resolver = patient(names, threads=4)
        slow = asyncio.ensure_future(resolver("slow.example", 80, "hostile"))
        await until(lambda: names.asked == ["slow.example"])
        queued = asyncio.ensure_future(resolver("api.example", 80, "hostile"))
        await until(lambda: resolver.waiting == {"hostile": 1})
        assert await resolver("api.example", 80, "other") == FOUND
        assert await queued == FOUND
        assert names.asked == ["slow.example", "api.example"]
        assert resolver.waiting == {}
        names.let_go("slow.example")
        await slow

    run(ask())


def test_namespaces_that_wait_take_turns() -> None:
    names = Names(held={"first.example"})

    async def ask() -> None:
        resolver = patient(names, threads=1)
        hosts = [("first", "a"), ("a2", "a"), ("a3", "a"), ("a4", "a"), ("b1", "b"), ("c1", "c"), ("b2", "b")]
        askers = [asyncio.ensure_future(resolver(f"{host}.example", 80, group)) for host, group in hosts]
        await until(lambda: sum(resolver.waiting.values()) == 6)
        names.let_go("first.example")
        await asyncio.gather(*askers)

    run(ask())
    assert [host.partition(".")[0] for host in names.asked] == ["first", "a2", "b1", "c1", "a3", "b2", "a4"]


def test_waiting_counts_against_the_limit_and_what_nobody_waits_for_is_not_looked_up() -> None:
    names = Names(held={"slow.example"})

    async def ask() -> None:
        resolver = SystemResolver(getaddrinfo=names, threads=4, limit_seconds=0.02)
        hosts = ["slow.example", *(f"{n}.example" for n in range(50))]
        ends = await asyncio.gather(*(resolver(host, 80, "tenant") for host in hosts), return_exceptions=True)
        assert [type(end) for end in ends] == [TimeoutError] * 51
        assert resolver.waiting == {}
        names.let_go("slow.example")
        await until(lambda: resolver.busy == {})
        assert names.asked == ["slow.example"]

    run(ask())


def test_an_asker_that_is_cancelled_takes_its_place_in_the_queue_with_it() -> None:
    names = Names(held={"slow.example"})

    async def ask() -> None:
        resolver = patient(names, threads=4)
        slow = asyncio.ensure_future(resolver("slow.example", 80))
        one, other = (asyncio.ensure_future(resolver("a.example", 80)) for _ in range(2))
        await until(lambda: resolver.waiting == {"": 1})
        one.cancel()
        await asyncio.gather(one, return_exceptions=True)
        assert resolver.waiting == {"": 1}, "the other one still waits for it"
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
        assert resolver.waiting == {}
        names.let_go("slow.example")
        await slow

    run(ask())


def test_closing_tells_whoever_waits_and_refuses_whoever_comes_later() -> None:
    names = Names(held={"slow.example"})

    async def ask() -> None:
        resolver = patient(names, threads=4)
        askers = [asyncio.ensure_future(resolver(host, 80)) for host in ("slow.example", "a.example")]
        await until(lambda: resolver.waiting == {"": 1})
        resolver.close()
        for asker in askers:
            with pytest.raises(OSError, match="is closed"):
                await asker
        with pytest.raises(OSError, match="is closed"):
            await resolver("b.example", 80)
        names.let_go("slow.example")
        await until(lambda: resolver.busy == {})

    run(ask())
    assert names.asked == ["slow.example"]


def test_a_look_up_that_outlives_its_loop_settles_its_account() -> None:
    names = Names(held={"slow.example"})
    resolver = patient(names, threads=4)

    async def leave() -> None:
        asker = asyncio.ensure_future(resolver("slow.example", 80))
        await until(lambda: names.asked == ["slow.example"])
        asker.cancel()

    run(leave())
    assert resolver.busy == {"": 1}
    names.let_go("slow.example")
    limit = time.monotonic() + PATIENCE
    while resolver.busy:
        assert time.monotonic() < limit
        time.sleep(0.001)
    assert run(resolver("slow.example", 80)) == FOUND


def test_a_system_without_threads_fails_whoever_asks_and_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def ask() -> None:
        resolver = patient(Names())
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", none_left)
            with pytest.raises(OSError, match="can't start new thread"):
                await resolver("a.example", 80)
        assert resolver.busy == {}
        assert await resolver("a.example", 80) == FOUND

    run(ask())


# Behind the guard and the launcher


def test_a_look_up_that_takes_too_long_is_no_refusal() -> None:
    names = Names(held={"slow.example"})

    async def ask() -> object:
        return await AddressGuard(resolver=SystemResolver(getaddrinfo=names, limit_seconds=0.02)).judge(
            "slow.example", 80
        )

    assert run(ask()) == Unresolved("slow.example cannot be resolved: took longer than 0.02 s")
    names.let_go("slow.example")


def launched(url: str, resolver: Any, **changes: Any) -> Outcome:
    async def launch() -> Outcome:
        async with HttpFarEnd({"/": answer("200 OK")}) as far:
            launcher = HttpLauncher(FixedClock(), guard=AddressGuard(AddressPolicy(allow_loopback=True), resolver))
            target = {"url": url.replace("PORT", str(far.port))}
            outcome = await launcher.launch(request_for("http", target, **changes))
            await launcher.close()
            return outcome

    return asyncio.run(launch())


def test_a_launch_looks_up_the_name_as_it_is_written_for_its_namespace() -> None:
    asked: list[tuple[str, str]] = []

    async def note(host: str, _port: int, group: str) -> Sequence[str]:
        asked.append((host, group))
        return ["127.0.0.1"]

    # `faß`, which an older rule for names (IDNA 2003) would turn into the name of somebody else, `fass`.
    assert launched("http://xn--fa-hia.example:PORT/", note, namespace="tenant") == Finished(None)
    assert asked == [("xn--fa-hia.example", "tenant")]


def test_a_name_that_no_rule_can_decode_gives_an_outcome() -> None:
    wrong = socket.gaierror(socket.EAI_NONAME, "no such name")
    outcome = launched("http://xn--zz--.example/", patient(Names(wrong={"xn--zz--.example": wrong})))
    assert outcome == Unreachable(f"xn--zz--.example cannot be resolved: {wrong}")


def test_closing_the_launcher_closes_the_resolver() -> None:
    resolver = SystemResolver(getaddrinfo=Names(wrong={"a.example": OSError("no")}))
    assert isinstance(launched("http://a.example/", resolver), Unreachable)
    with pytest.raises(OSError, match="is closed"):
        run(resolver("b.example", 80))
