"""What a preview says of an occurrence: it will be dispatched, or skipped."""

from __future__ import annotations

from enum import StrEnum


class Forecast(StrEnum):
    DISPATCH = "dispatch"
    SKIP = "skip"
