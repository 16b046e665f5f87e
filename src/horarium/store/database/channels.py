"""The channels on which processes wake each other: due schedules, ready runs, news of a run."""

from __future__ import annotations

DUE = "horarium_due"
READY = "horarium_ready"
PUSHED = "horarium_pushed"
"""The payload names the run, so that the follower polls its target at once."""
