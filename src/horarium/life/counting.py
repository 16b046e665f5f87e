"""What a run has used, counted over all its attempts, and which cap that passes."""

from __future__ import annotations

from dataclasses import replace

from horarium.instant import Instant
from horarium.life.change import End, Used
from horarium.life.live_run import LiveRun, Rules
from horarium.life.outcome import Finished, RunFailed
from horarium.policy.limits import RunLimits, Usage, credits_of, exceeded, millionths
from horarium.policy.names import MAX_LONG
from horarium.schedule.run import RunState


def used_with(run: LiveRun, said: Finished | RunFailed) -> Used:
    cost = None if said.cost is None else millionths(said.cost, "cost")
    return used_by(run, cost, said.tokens, said.tool_calls)


def used_by(run: LiveRun, cost: int | None, tokens: int | None, tool_calls: int | None) -> Used:
    """A target knows its own attempt only: what the earlier ones used comes on top."""
    before, so_far = run.earlier, run.used
    return Used(
        so_far.cost if cost is None else _sum(before.cost, cost),
        so_far.tokens if tokens is None else _sum(before.tokens, tokens),
        so_far.tool_calls if tool_calls is None else _sum(before.tool_calls, tool_calls),
    )


def _sum(before: int, more: int) -> int:
    """Add, limited to what a column can hold: a sum must not keep a run from ending."""
    return min(before + more, MAX_LONG) if more <= MAX_LONG else more


def end_by_cap(run: LiveRun, used: Used, rules: Rules, now: Instant) -> End | None:
    """End a run that exceeded a limit; None = it is within all limits."""
    cause = "runtime_cap" if run.ends_by is not None and now >= run.ends_by else _passed(used, rules.limits)
    if cause is None:
        return None
    error = f"the run exceeded its {cause.replace('_', ' ')}"
    return End(RunState.FAILED, error=error, cause=cause, used=used, attempt=run.attempt + 1)


def _passed(used: Used, limits: RunLimits) -> str | None:
    if limits.cost is None and limits.tokens is None and limits.tool_calls is None:
        return None
    usage = Usage(cost=credits_of(used.cost), tokens=used.tokens, tool_calls=used.tool_calls)
    return exceeded(replace(limits, runtime_seconds=None), usage)
