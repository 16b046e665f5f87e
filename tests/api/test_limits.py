"""How often a token may ask."""

from __future__ import annotations

import pytest

from horarium.platform.http.connections import Buckets, RateLimited
from horarium.testing import FakeClock, service

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


def taken(buckets: Buckets, key: bytes = b"a") -> bool:
    try:
        buckets.take(key)
    except RateLimited:
        return False
    return True


def test_a_burst_is_let_through_and_then_the_steady_rate(dialect: str) -> None:
    clock = FakeClock()
    buckets = Buckets(clock, per_second=2, burst=3)
    assert [taken(buckets) for _ in range(4)] == [True, True, True, False]
    clock.advance(0.5)
    assert [taken(buckets) for _ in range(2)] == [True, False]
    clock.advance(60)
    assert [taken(buckets) for _ in range(4)] == [True, True, True, False]


def test_each_token_has_its_own_bucket(dialect: str) -> None:
    buckets = Buckets(FakeClock(), per_second=1, burst=1)
    assert [taken(buckets, key) for key in (b"a", b"b", b"a")] == [True, True, False]


def test_a_clock_that_is_set_back_takes_nothing_away(dialect: str) -> None:
    clock = FakeClock()
    buckets = Buckets(clock, per_second=1, burst=2)
    assert taken(buckets)
    clock.set(0)
    assert taken(buckets)


@pytest.mark.parametrize(("per_second", "wait"), [(2, 1), (0.25, 4)])
def test_who_is_refused_hears_how_long_to_wait(dialect: str, per_second: float, wait: int) -> None:
    buckets = Buckets(FakeClock(), per_second=per_second, burst=1)
    buckets.take(b"a")
    with pytest.raises(RateLimited) as refused:
        buckets.take(b"a")
    assert refused.value.seconds == wait


def test_the_number_of_buckets_is_bounded(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horarium.platform.http.connections._MOST_BUCKETS", 2)
    buckets = Buckets(FakeClock(), per_second=1, burst=1)
    assert [taken(buckets, key) for key in (b"a", b"b", b"c", b"c", b"a")] == [True, True, True, False, True]


def test_too_many_requests_are_429_with_the_time_to_wait(database_url: str) -> None:
    knobs = {"rate_limit_per_second": 1, "rate_limit_burst": 3}
    with service(database=database_url, settings=knobs) as horarium:
        http = horarium.http()
        assert [http.get("/api/schedules").status_code for _ in range(4)] == [200, 200, 200, 429]
        refused = http.get("/api/schedules")
        assert (refused.json()["reason"], refused.headers["retry-after"]) == ("rate_limited", "1")
        assert http.get("/livez").status_code == 200
        horarium.clock.advance(1)
        assert http.get("/api/schedules").status_code == 200
