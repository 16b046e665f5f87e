"""No outcome keeps a secret, whichever it is."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from horarium.core.document.secret_values import Redactor
from horarium.core.lifecycle import outcome
from horarium.core.lifecycle.outcome import Outcome, without_secrets

TOKEN = "s3cr3t-token-42"
OUTCOMES = [
    outcome.Finished({"echo": TOKEN}, cost=1.0),
    outcome.Accepted(TOKEN, queued=True),
    outcome.Accepted(),
    outcome.Asked("agent_input", TOKEN, "task-1"),
    outcome.Refused(TOKEN),
    outcome.Busy(3.0, sent=True),
    outcome.Unreachable(TOKEN, sent=True),
    outcome.Unknown(TOKEN),
    outcome.RunFailed(TOKEN, TOKEN, [TOKEN]),
    outcome.RunTimedOut(TOKEN),
    outcome.RunCancelled(TOKEN),
]


@pytest.mark.parametrize("given", OUTCOMES, ids=lambda each: type(each).__name__)
def test_an_outcome_keeps_all_but_the_secret(given: Any) -> None:
    masked = without_secrets(given, Redactor([TOKEN]))
    assert TOKEN not in repr(masked)
    assert repr(masked) == repr(given).replace(TOKEN, "***")


def test_every_outcome_is_tried() -> None:
    assert {type(each) for each in OUTCOMES} == set(get_args(Outcome))
