"""Planning: what a decision needs of a definition, compiled once and shared by all schedules that read alike.

A definition may be large; a tick reads none of it. When a revision is written its planning text is
written beside it: small, canonical, and free of the schedule's identity (`H` is already resolved), so
that a hundred thousand schedules with a few hundred different texts compile a few hundred times.

A field that a decision reads is one line in `Planning`: its default, what the text says of a definition, and
how the text is read.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import lru_cache, wraps
from operator import attrgetter
from typing import Annotated, Any, Final, NamedTuple, TypeVar, cast

from horarium.condition import Condition, compile_condition
from horarium.core.document.assignee import Assignee, AssigneeType
from horarium.core.document.definition import Definition, SpecText
from horarium.core.document.effective_policies import Effective, effective_text, read_effective
from horarium.core.document.reader import PULL, SHIPPED, WORKFLOW, Kinds
from horarium.core.document.rendering import TemplateUse, use_of
from horarium.core.document.states import Delivery
from horarium.core.policy.approval import WhileWaiting
from horarium.core.policy.limits import Budget, credits_of, millionths_of
from horarium.core.policy.queue import (
    MAX_PRIORITY,
    MIN_PRIORITY,
    Catchup,
    CatchupPolicy,
    Overlap,
    OverlapPolicy,
    canonical_json,
)
from horarium.core.recurrence.cron import resolve_hashes
from horarium.core.recurrence.spec import Spec, compile_spec

# Annotations are read here when the module is imported, so they are not postponed.


_OVERLAP, _CATCHUP, _BUDGET = Overlap(), Catchup(), Budget()
_NUMBERS: Final = {kind: attrgetter(*(each.name for each in fields(kind))) for kind in (Overlap, Catchup)}
FAILING_AFTER_KEY: Final = "after_failures"
FAILING_AFTER_DIGITS: Final = 10
_SPEC_NAMES: Final = tuple(each.name for each in fields(SpecText))


class _Source(NamedTuple):
    """Source of a text. `needs_approval` is set by the caller, who knows which policies apply."""

    definition: Definition
    kinds: Kinds
    needs_approval: bool


class StoredField(NamedTuple):
    """Conversion of a field to the text and back.

    `key` is its name in the text, if it differs; `missing` replaces it in the text of an older program, which did not
    know it.
    """

    said: Callable[[_Source], Any] | None
    read: Callable[[Any], Any] | None = None
    key: str = ""
    missing: Callable[[dict[str, Any]], Any] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Planning:
    """Two are the same only if they are the same object: equal texts give the same one."""

    spec: Spec
    overlap: Annotated[
        Overlap,
        StoredField(lambda of: _values(of.definition.overlap), lambda said: Overlap(OverlapPolicy(said[0]), *said[1:])),
    ] = _OVERLAP
    catchup: Annotated[
        Catchup,
        StoredField(lambda of: _values(of.definition.catchup), lambda said: Catchup(CatchupPolicy(said[0]), *said[1:])),
    ] = _CATCHUP
    calendars: Annotated[tuple[str, ...], StoredField(lambda of: of.definition.calendars, tuple)] = ()
    condition: Annotated[
        Condition | None,
        StoredField(
            lambda of: of.definition.pre_dispatch_condition,
            lambda said: None if said is None else compile_condition(said),
        ),
    ] = None
    rotation: Annotated[int, StoredField(lambda of: len(of.definition.inputs_rotation))] = 0
    budget: Annotated[
        Budget, StoredField(lambda of: _budget(of.definition.budget), lambda said: Budget(credits_of(said[0]), said[1]))
    ] = _BUDGET
    reserve: Annotated[
        Decimal,
        StoredField(
            lambda of: millionths_of(of.definition.limits.cost) or 0, lambda said: credits_of(said) or Decimal(0)
        ),
    ] = Decimal(0)
    assignee: Annotated[str | None, StoredField(lambda of: getattr(of.definition.assignee, "id", None))] = None
    max_runs: Annotated[int | None, StoredField(lambda of: of.definition.max_runs)] = None
    pause_on_failure: Annotated[int | None, StoredField(lambda of: of.definition.pause_on_failure)] = None
    needs_approval: Annotated[bool, StoredField(lambda of: of.needs_approval)] = False
    workflow: Annotated[str | None, StoredField(lambda of: of.definition.action.workflow)] = None
    kind: Annotated[str, StoredField(lambda of: of.definition.action.kind, lambda said: _text(said))] = PULL.name
    concurrency_key: Annotated[
        str | None,
        StoredField(
            lambda of: [of.definition.concurrency_key, of.definition.concurrency_limit],
            lambda said: _pair(*said)[0],
            key="concurrency",
        ),
    ] = None
    concurrency_limit: Annotated[int, StoredField(None, lambda said: _pair(*said)[1], key="concurrency")] = 1
    # An older program set no bounds.
    priority: Annotated[
        int, StoredField(lambda of: of.definition.priority, lambda said: max(MIN_PRIORITY, min(MAX_PRIORITY, said)))
    ] = 0
    queue: Annotated[str | None, StoredField(lambda of: of.definition.action.queue)] = None
    timeout_seconds: Annotated[
        int, StoredField(lambda of: of.kinds.timeout_of(of.definition.action), key="timeout")
    ] = 3_600
    delivery: Annotated[Delivery, StoredField(lambda of: of.definition.action.delivery, Delivery)] = (
        Delivery.AT_LEAST_ONCE
    )
    target: Annotated[
        str,
        StoredField(
            lambda of: of.kinds.target_of(of.definition.action, of.definition.assignee),
            missing=lambda document: f"{document['kind']}:",
        ),
    ] = ""
    attempt_ms: Annotated[int | None, StoredField(lambda of: _attempt_ms(of), missing=lambda _: None)] = None
    runtime_seconds: Annotated[
        int | None, StoredField(lambda of: of.definition.limits.runtime_seconds, missing=lambda _: None)
    ] = None
    # What few schedules say has no place in the texts of the others.
    assignee_type: Annotated[
        AssigneeType | None,
        StoredField(None, AssigneeType, missing=lambda document: AssigneeType.AGENT if document["assignee"] else None),
    ] = None
    assignment: Annotated[str | None, StoredField(None, missing=lambda _: None)] = None
    asked_version: Annotated[int | None, StoredField(None, missing=lambda _: None)] = (
        None  # of its workflow; None = latest
    )
    # Its own policies, where others have a word too. A text of an older program has none.
    own_policies: Annotated[
        Effective | None, StoredField(None, lambda said: read_effective(said), missing=lambda _: None)
    ] = None
    # What a run that waits for a yes is to the next occurrence; most texts say nothing of it.
    while_waiting: Annotated[WhileWaiting, StoredField(None, WhileWaiting, missing=lambda _: WhileWaiting.COUNT)] = (
        WhileWaiting.COUNT
    )
    # Unsuccessful runs in a row that make it failing; None = as many as the service says. SQL reads it at the beginning
    # of the text, where the order of the keys puts it: see `features/schedules/health_rows.py`.
    failing_after: Annotated[int | None, StoredField(None, int, key=FAILING_AFTER_KEY, missing=lambda _: None)] = None
    # Who owned a stored workflow when its scheduler was found to be entitled to it; most texts say nothing of it.
    workflow_owner: Annotated[str | None, StoredField(None, missing=lambda _: None)] = None
    # What inputs that are given to a run mean to the template of its action; None = it has none, as most.
    template: Annotated[TemplateUse | None, StoredField(None, TemplateUse, missing=lambda _: None)] = None
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    """What was worked out about it: see `remembered`."""

    @property
    def assigned(self) -> Assignee | None:
        """Assignee that the schedule itself names."""
        return None if self.assignee is None else Assignee(self.assignee_type or AssigneeType.AGENT, self.assignee)


_FIELDS: Final = tuple(
    (name, hint.__metadata__[0]._replace(key=hint.__metadata__[0].key or name))
    for name, hint in Planning.__annotations__.items()
    if name not in ("spec", "memo")
)
_DOCUMENT_PARTS: Final = tuple((kept.key, kept.said) for _, kept in _FIELDS if kept.said is not None)


def planning_text(
    definition: Definition,
    *,
    needs_approval: bool,
    kinds: Kinds = SHIPPED,
    before: Planning | None = None,
    workflow_owner: str | None = None,
) -> str:
    """`before` is the planning that this one replaces: it knows the target and the time of a kind that is gone."""
    if before is not None and before.kind == definition.action.kind:
        kinds = kinds.with_stored(definition.action, before.target.partition(":")[2], before.timeout_seconds)
    of = _Source(definition, kinds, needs_approval)
    document = {key: said(of) for key, said in _DOCUMENT_PARTS}
    document["spec"] = _spec_document(definition.spec, definition.schedule_id)
    document |= _rare(definition)
    if workflow_owner is not None:
        document["workflow_owner"] = workflow_owner
    waiting = definition.approval.while_waiting
    if waiting is not None and waiting is not WhileWaiting.COUNT:
        document["while_waiting"] = waiting.value
    return canonical_json(document)


F = TypeVar("F", bound=Callable[..., Any])


def remembered(compute: F) -> F:
    """A function of a planning, and of plain words, that is computed once for each planning, and forgotten with it.

    Drafts that nobody keeps come by the thousand: a cache of its own would hold the last of them for ever.
    """

    @wraps(compute)
    def recall(planning: Planning, *words: Any) -> Any:
        key = (compute, *words)
        try:
            return planning.memo[key]
        except KeyError:
            found = planning.memo[key] = compute(planning, *words)
            return found

    return cast("F", recall)


@lru_cache(maxsize=16_384)
def compile_planning(text: str) -> Planning:
    """Raises whatever is wrong with a corrupt text; the caller parks the schedule."""
    return compile_once(text)


def compile_once(text: str) -> Planning:
    """As `compile_planning`, for what nobody keeps."""
    document = json.loads(text)
    values: dict[str, Any] = {"spec": compile_spec(**document["spec"])}
    for name, kept in _FIELDS:
        if kept.missing is not None and kept.key not in document:
            values[name] = kept.missing(document)
        else:
            said = document[kept.key]
            values[name] = said if kept.read is None else kept.read(said)
    return Planning(**values)


def _rare(definition: Definition) -> dict[str, Any]:
    """Members that are in a text only if they are set."""
    found: dict[str, Any] = {}
    assignee, assignment = definition.assignee, definition.workflow_assignment_id
    if assignee is not None and assignee.type is not AssigneeType.AGENT:
        found["assignee_type"] = assignee.type.value
    if assignment is not None:
        found["assignment"] = assignment
    if assignee is not None or assignment is not None:
        own = Effective(definition.approval, definition.retry, definition.failure, definition.limits)
        found["own_policies"] = effective_text(own)
    if (use := use_of(definition.action)) is not None:
        found["template"] = use.value
    if definition.failing_after is not None:
        found[FAILING_AFTER_KEY] = f"{definition.failing_after:0{FAILING_AFTER_DIGITS}}"
    version = definition.action.target.get("version")
    if definition.action.kind == WORKFLOW.name and isinstance(version, int):
        found["asked_version"] = version
    return found


def _values(policy: Overlap | Catchup) -> tuple[Any, ...]:
    return _NUMBERS[type(policy)](policy)


def _budget(budget: Budget) -> list[int | None]:
    return [millionths_of(budget.spending_limit_credits), budget.max_daily_runs]


def _pair(first: Any, second: Any) -> tuple[Any, Any]:
    return first, second


def _text(said: object) -> str:
    """A kind may be that of a package which is not installed here: that is for the launch to say."""
    if not isinstance(said, str) or not said:
        raise TypeError("the kind of an action must be a string")
    return said


def _attempt_ms(of: _Source) -> int | None:
    """The time of an attempt, where the retry policy allows less of it than the action."""
    allowed = of.definition.retry.timeout_ms
    return None if allowed is None or allowed >= of.kinds.timeout_of(of.definition.action) * 1_000 else allowed


def _spec_document(spec: SpecText, key: str) -> dict[str, Any]:
    """As the arguments of `compile_spec`."""
    document = {name: getattr(spec, name) for name in _SPEC_NAMES}
    return document | {
        "cron_expressions": [resolve_hashes(text, key) for text in spec.cron_expressions],
        "intervals": [{"every": each.every, "offset": each.offset} for each in spec.intervals],
    }
