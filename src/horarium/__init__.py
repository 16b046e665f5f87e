"""Horarium: when could it happen, whether it does, and why."""

from horarium.errors import ConditionError, HorariumError, InvalidSpec
from horarium.recurrence.fires import next_fires

__all__ = ["ConditionError", "HorariumError", "InvalidSpec", "next_fires"]
