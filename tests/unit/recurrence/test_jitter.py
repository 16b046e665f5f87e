"""Jitter is late on purpose: the same after any restart, never early, never as late as the next occurrence."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horarium.core.recurrence.spec import compile_spec, jitter_delay
from horarium.instant import HOUR, MINUTE, SECOND

MILLISECOND = 1_000
uids = st.binary(min_size=0, max_size=32)


@settings(derandomize=True, deadline=None)
@given(uids, st.integers(-(2**62), 2**62), st.integers(0, 10**8), st.none() | st.integers(1, 10**13))
def test_a_delay_is_within_its_range_and_before_the_next(
    uid: bytes, nominal: int, jitter: int, gap: int | None
) -> None:
    following = None if gap is None else nominal + gap
    delay = jitter_delay(uid, nominal, jitter, following)
    assert 0 <= delay <= jitter * MILLISECOND
    assert delay % MILLISECOND == 0
    assert following is None or nominal + delay < following
    assert delay == jitter_delay(uid, nominal, jitter, following)


@pytest.mark.parametrize(
    ("jitter", "following"),
    [(0, None), (-5, None), (1_000, MILLISECOND), (1_000, 1)],
    ids=["none", "negative", "no whole millisecond before the next", "a microsecond before the next"],
)
def test_without_room_there_is_no_delay(jitter: int, following: int | None) -> None:
    assert jitter_delay(b"u", 0, jitter, following) == 0


def test_the_delay_is_a_known_number() -> None:
    """A change of this number moves every jittered schedule in the world at the next upgrade."""
    assert jitter_delay(b"uid", 1_777_896_000 * SECOND, 60_000, None) == 13_320_000


def test_schedules_and_occurrences_have_delays_of_their_own() -> None:
    by_uid = {jitter_delay(bytes([n]), 0, 60_000, None) for n in range(100)}
    by_nominal = {jitter_delay(b"u", n * MINUTE, 60_000, None) for n in range(100)}
    assert len(by_uid) > 90
    assert len(by_nominal) > 90


def test_a_jitter_longer_than_the_period_spreads_evenly_instead_of_heaping_up() -> None:
    delays = [jitter_delay(b"u", n * MINUTE, 3_600_000, (n + 1) * MINUTE) for n in range(2_000)]
    in_tenths = [sum(delay * 10 // MINUTE == tenth for delay in delays) for tenth in range(10)]
    assert all(100 < count < 300 for count in in_tenths)


def test_a_spec_is_due_with_its_jitter_and_keeps_the_order() -> None:
    spec = compile_spec(cron_expressions=["* * * * *"], jitter_ms=600_000)
    nominals = [n * MINUTE for n in range(500)]
    dues = [spec.due(b"u", nominal) for nominal in nominals]
    assert dues == sorted(dues)
    assert all(nominal <= due < nominal + MINUTE for nominal, due in zip(nominals, dues, strict=True))


def test_without_jitter_an_occurrence_is_due_at_its_name() -> None:
    assert compile_spec(cron_expressions=["* * * * *"]).due(b"u", HOUR) == HOUR


def test_the_last_occurrence_has_its_whole_jitter() -> None:
    spec = compile_spec(at=["2026-05-04T12:00:00Z"], jitter_ms=10**7)
    nominal = spec.next_after(0)
    assert nominal is not None
    assert spec.due(b"u", nominal) == nominal + jitter_delay(b"u", nominal, 10**7, None)
