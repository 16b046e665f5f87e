"""The names under which processes wake each other: there is something due, there is something ready."""

from __future__ import annotations

DUE = "horarium_due"
READY = "horarium_ready"
