"""Whoever would start very many runs at once is told how many, and says that it is meant."""

from __future__ import annotations

from horarium.decision.storm import MOST_AT_ONCE, must_be_confirmed
from horarium.operations.caller import Caller
from horarium.operations.errors import ConfirmNeeded


def require_confirmed(caller: Caller, runs: int) -> None:
    """Raises ConfirmNeeded, and then nothing was done."""
    if must_be_confirmed(runs) and not caller.confirmed:
        raise ConfirmNeeded(runs, MOST_AT_ONCE)
