"""An outcome without the secrets that were sent: what a target says is stored and shown, and it may repeat them."""

from __future__ import annotations

from dataclasses import replace

from horarium.life.outcome import (
    Accepted,
    Asked,
    Busy,
    Finished,
    Outcome,
    Refused,
    RunCancelled,
    RunFailed,
    RunTimedOut,
    Unknown,
    Unreachable,
)
from horarium.schedule.redaction import Redactor


def without_secrets(outcome: Outcome, redactor: Redactor) -> Outcome:
    match outcome:
        case Finished(result):
            return replace(outcome, result=redactor.json(result))
        case Accepted(str() as reference):
            return replace(outcome, reference=redactor.text(reference))
        case Asked(question=question):
            return replace(outcome, question=redactor.text(question))
        case RunFailed(error, error_class, result):
            kept = None if error_class is None else redactor.text(error_class)
            return replace(outcome, error=redactor.text(error), error_class=kept, result=redactor.json(result))
        case Refused(error) | Unreachable(error) | Unknown(error) | RunTimedOut(error) | RunCancelled(error):
            return replace(outcome, error=redactor.text(error))
        case Accepted() | Busy():
            return outcome
