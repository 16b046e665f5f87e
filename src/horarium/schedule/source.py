"""The source of a definition."""

from __future__ import annotations

from enum import StrEnum


class Source(StrEnum):
    """`template`: managed by code or a bundle. `runtime`: created by a user."""

    TEMPLATE = "template"
    RUNTIME = "runtime"
