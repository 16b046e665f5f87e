"""The memory that bodies of unknown callers share."""

from __future__ import annotations

import pytest

from horarium.api.request_bodies import BodiesFull, BodyBudget


def test_a_budget_that_is_used_up_gives_nothing() -> None:
    budget = BodyBudget(10)
    budget.take(10)
    with pytest.raises(BodiesFull):
        budget.take(1)
    budget.give_back(10)
    budget.take(10)
    assert budget.used == 10
