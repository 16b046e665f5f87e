"""Variables of the environment that begin with HORARIUM_ and that nothing reads, which are spelling mistakes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from horarium.settings.knobs import PREFIX, Settings

# Read by commands and clients, which have no settings.
OTHERS: Final = frozenset(
    f"{PREFIX}{name}"
    for name in (
        "CA_FILE",
        "CELERY_SPOOL",
        "CLIENT_CERT",
        "CLIENT_KEY",
        "CONFIG",
        "CONTEXT",
        "NAMESPACE",
        "SERVER",
        "SUBSCRIPTION_SECRET",
        "TOKEN",
        "TZ",
        "URL",
    )
)
# What a cluster adds for a service of this name, and what a run gives the command that it starts.
_GIVEN: Final = re.compile(
    PREFIX + r"(SERVICE_(HOST|PORT)(_\w+)?|PORT_\d+_(TCP|UDP)(_\w+)?|(RUN|ROOT_RUN|PARENT_RUN|REPORT|TEST)_\w+"
    r"|SCHEDULE_ID|NODE_ID|INSTANCE_ID|WORKFLOW_(ID|VERSION)|USER_ID|LIMITS|COMPLETE)",
    re.ASCII,
)
_MOST: Final = 20


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """One sentence for each, with the nearest name that is read. Values are not repeated."""
    known = {f"{PREFIX}{name}".upper() for name in Settings.model_fields} | OTHERS
    wrong = sorted(
        name
        for name in environment
        if name.upper().startswith(PREFIX) and name.upper() not in known and not _GIVEN.fullmatch(name.upper())
    )
    return [f"{name[:100]} is not a setting{_hint(name.upper(), known)}" for name in wrong[:_MOST]]


def _hint(name: str, known: set[str]) -> str:
    close = get_close_matches(name.removeprefix(PREFIX), [each.removeprefix(PREFIX) for each in known], n=1)
    return f"; did you mean {PREFIX}{close[0]}?" if close else ""
