"""Answers that are given again."""

from __future__ import annotations

import pytest

from horarium.platform.database import Database, idempotency
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.idempotency import Remembered


def remember(database: Database, key: str, now: int = 5, namespace: str = "default") -> None:
    database.write(
        lambda c: idempotency.remember(
            c, namespace, key, request_hash="h", status=201, answer={"run_id": key, "n": [1, None]}, now=now
        )
    )


def test_an_answer_is_recalled_by_namespace_and_key(database: Database) -> None:
    remember(database, "k")
    recalled = database.read(lambda c: idempotency.recall(c, "default", "k"))
    assert recalled == Remembered("h", 201, {"run_id": "k", "n": [1, None]}, 5)
    assert database.read(lambda c: idempotency.recall(c, "other", "k")) is None
    assert database.read(lambda c: idempotency.recall(c, "default", "K")) is None


def test_the_second_of_two_equal_requests_is_told_that_it_is_the_second(database: Database) -> None:
    remember(database, "k")
    with pytest.raises(UniqueConflict) as taken:
        remember(database, "k")
    assert taken.value.constraint == "idempotency_pkey"


def test_old_answers_are_forgotten_a_few_at_a_time(database: Database) -> None:
    for now in range(5):
        remember(database, f"k{now}", now=now)
    assert database.write(lambda c: idempotency.purge(c, created_before=4, limit=3)) == 3
    assert database.write(lambda c: idempotency.purge(c, created_before=4, limit=3)) == 1
    assert database.write(lambda c: idempotency.purge(c, created_before=4, limit=3)) == 0
    assert database.read(lambda c: idempotency.recall(c, "default", "k4")) is not None
