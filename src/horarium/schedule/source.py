"""Who owns a definition."""

from __future__ import annotations

from enum import StrEnum


class Source(StrEnum):
    """`template` rows follow re-imports, `runtime` rows are the user's."""

    TEMPLATE = "template"
    RUNTIME = "runtime"
