"""What is settled at a run's birth is read again as it was written."""

from __future__ import annotations

from horarium.core.document.effective_policies import Effective, PolicyOrigin, effective_text, read_effective
from horarium.core.policy.approval import (
    ApprovalMode,
    ApprovalPolicy,
    FailureMode,
    FailurePolicy,
    RetryCause,
    RetryPolicy,
)
from horarium.core.policy.limits import RunLimits


def test_nothing_said_is_read_as_nothing_said() -> None:
    assert read_effective(effective_text(Effective())) == Effective()


def test_everything_said_is_read_as_it_was_written() -> None:
    said = Effective(
        ApprovalPolicy(True, ApprovalMode.EVERY_NODE, frozenset({"spend", "publish"}), 60),
        RetryPolicy(3, 10, 100, (RetryCause.TIMEOUT,), 5_000),
        FailurePolicy(FailureMode.FALLBACK, "second"),
        RunLimits(60, 3, 1_000, 5, ("search",)),
        {"approval_policy.mode": PolicyOrigin.AGENT, "retry_policy": PolicyOrigin.SCHEDULE},
        {"sub": 3},
    )
    assert read_effective(effective_text(said)) == said
