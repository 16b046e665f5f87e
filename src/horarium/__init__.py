"""Horarium: when could it happen, whether it does, and why."""

from typing import TYPE_CHECKING, Any

from horarium.condition import evaluate_condition
from horarium.errors import ConditionError, HorariumError, InvalidSpec
from horarium.recurrence.fires import next_fires

if TYPE_CHECKING:
    from horarium.app import Horarium

__all__ = ["ConditionError", "Horarium", "HorariumError", "InvalidSpec", "evaluate_condition", "next_fires"]


def __getattr__(name: str) -> Any:
    """The embedded service brings a web framework and a database along: only who asks for it waits for them."""
    if name == "Horarium":
        from horarium.app import Horarium

        return Horarium
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
