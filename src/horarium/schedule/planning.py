"""What a decision needs of a definition, compiled once and shared by all schedules that read alike.

A definition may be large; a tick reads none of it. When a revision is written its planning text is
written beside it: small, canonical, and free of the schedule's identity (`H` is already resolved), so
that a hundred thousand schedules with a few hundred different texts compile a few hundred times.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from horarium.condition import Condition, compile_condition
from horarium.policy.catchup import Catchup, CatchupPolicy
from horarium.policy.limits import MILLIONTHS, Budget
from horarium.policy.overlap import Overlap, OverlapPolicy
from horarium.policy.queue import MAX_PRIORITY, MIN_PRIORITY
from horarium.recurrence.cron import resolve_hashes
from horarium.recurrence.spec import Spec, compile_spec
from horarium.schedule.definition import ActionKind, Definition, SpecText
from horarium.schedule.run import Delivery
from horarium.schedule.target import target_of

_OVERLAP, _CATCHUP, _BUDGET = Overlap(), Catchup(), Budget()


@dataclass(frozen=True, slots=True, eq=False)
class Planning:
    """Two are the same only if they are the same object: equal texts give the same one."""

    spec: Spec
    overlap: Overlap = _OVERLAP
    catchup: Catchup = _CATCHUP
    calendars: tuple[str, ...] = ()
    condition: Condition | None = None
    rotation: int = 0
    budget: Budget = _BUDGET
    reserve: Decimal = Decimal(0)
    assignee: str | None = None
    max_runs: int | None = None
    pause_on_failure: int | None = None
    needs_approval: bool = False
    workflow: str | None = None
    kind: ActionKind = ActionKind.PULL
    concurrency_key: str | None = None
    concurrency_limit: int = 1
    priority: int = 0
    queue: str | None = None
    timeout_seconds: int = 3_600
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    target: str = ""
    attempt_ms: int | None = None
    runtime_seconds: int | None = None


def planning_text(definition: Definition, *, needs_approval: bool) -> str:
    """`needs_approval` is settled by the caller, who knows the assignment's and the agent's policies."""
    overlap, catchup, budget = definition.overlap, definition.catchup, definition.budget
    document: dict[str, Any] = {
        "spec": _spec_document(definition.spec, definition.schedule_id),
        "kind": definition.action.kind,
        "workflow": definition.action.workflow,
        "overlap": [overlap.policy, overlap.max_concurrency, overlap.max_buffered, overlap.cancel_grace_seconds],
        "catchup": [
            catchup.policy,
            catchup.max_catchup,
            catchup.catchup_window_seconds,
            catchup.catchup_spread_seconds,
            catchup.misfire_grace_seconds,
        ],
        "calendars": list(definition.calendars),
        "condition": definition.pre_dispatch_condition,
        "rotation": len(definition.inputs_rotation),
        "budget": [_millionths(budget.spending_limit_credits), budget.max_daily_runs],
        "reserve": _millionths(definition.limits.cost) or 0,
        "assignee": None if definition.assignee is None else definition.assignee.id,
        "max_runs": definition.max_runs,
        "pause_on_failure": definition.pause_on_failure,
        "needs_approval": needs_approval,
        "concurrency": [definition.concurrency_key, definition.concurrency_limit],
        "priority": definition.priority,
        "queue": definition.action.queue,
        "timeout": definition.action.deadline_seconds,
        "delivery": definition.action.delivery,
        "target": target_of(definition.action, definition.assignee),
        "attempt_ms": _attempt_ms(definition),
        "runtime_seconds": definition.limits.runtime_seconds,
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


@lru_cache(maxsize=16_384)
def compile_planning(text: str) -> Planning:
    """Raises whatever is wrong with a corrupt text; the caller parks the schedule."""
    document = json.loads(text)
    overlap, catchup, budget = document["overlap"], document["catchup"], document["budget"]
    key, limit = document["concurrency"]
    return Planning(
        spec=compile_spec(**document["spec"]),
        overlap=Overlap(OverlapPolicy(overlap[0]), *overlap[1:]),
        catchup=Catchup(CatchupPolicy(catchup[0]), *catchup[1:]),
        calendars=tuple(document["calendars"]),
        condition=None if document["condition"] is None else compile_condition(document["condition"]),
        rotation=document["rotation"],
        budget=Budget(_credits(budget[0]), budget[1]),
        reserve=_credits(document["reserve"]) or Decimal(0),
        assignee=document["assignee"],
        max_runs=document["max_runs"],
        pause_on_failure=document["pause_on_failure"],
        needs_approval=document["needs_approval"],
        workflow=document["workflow"],
        kind=ActionKind(document["kind"]),
        concurrency_key=key,
        concurrency_limit=limit,
        # An older program set no bounds.
        priority=max(MIN_PRIORITY, min(MAX_PRIORITY, document["priority"])),
        queue=document["queue"],
        timeout_seconds=document["timeout"],
        delivery=Delivery(document["delivery"]),
        # Texts that were written before these had a place name none of them.
        target=document.get("target", f"{document['kind']}:"),
        attempt_ms=document.get("attempt_ms"),
        runtime_seconds=document.get("runtime_seconds"),
    )


def _attempt_ms(definition: Definition) -> int | None:
    """The time of an attempt, where the retry policy allows less of it than the action."""
    allowed = definition.retry.timeout_ms
    return None if allowed is None or allowed >= definition.action.deadline_seconds * 1_000 else allowed


def _spec_document(spec: SpecText, key: str) -> Mapping[str, Any]:
    return {
        "cron_expressions": [resolve_hashes(text, key) for text in spec.cron_expressions],
        "intervals": [{"every": each.every, "offset": each.offset} for each in spec.intervals],
        "at": list(spec.at),
        "timezone": spec.timezone,
        "start_at": spec.start_at,
        "end_at": spec.end_at,
        "jitter_ms": spec.jitter_ms,
        "dst_gap": spec.dst_gap,
        "dst_fold": spec.dst_fold,
    }


def _millionths(amount: Decimal | int | None) -> int | None:
    return None if amount is None else int(amount * MILLIONTHS)


def _credits(millionths: int | None) -> Decimal | None:
    return None if millionths is None else Decimal(millionths) / MILLIONTHS
