"""The names under which processes wake each other: there is something due, something ready, news of a run."""

from __future__ import annotations

DUE = "horarium_due"
READY = "horarium_ready"
PUSHED = "horarium_pushed"
"""Says of which run: whoever follows it at its target may ask there at once."""
