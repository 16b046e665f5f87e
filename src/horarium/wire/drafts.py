"""Answers about drafts, revisions and condition tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from horarium.condition import Operator
from horarium.wire.answer import Answer, Object, Time
from horarium.wire.bodies import Body, Name
from horarium.wire.runs import RunPolicies
from horarium.wire.schedules import PreviewRow, Year


class MovedFire(Answer, frozen=True, kw_only=True, rename={"before": "from", "after": "to"}):
    """A fire whose time changes: on the same day, or to the nearest time within a week."""

    before: Time
    after: Time


class FireChanges(Answer, frozen=True, kw_only=True):
    """Fires that are added, removed or moved up to `until`. `bounded`: later fires were not compared.

    Considers the spec, the attached calendars and `max_runs`; at most 100 changes within a year.
    """

    added: tuple[Time, ...]
    removed: tuple[Time, ...]
    moved: tuple[MovedFire, ...]
    until: Time
    bounded: bool


class ScheduleDraft(Answer, frozen=True, kw_only=True):
    """Preview of a schedule document. Nothing is written.

    `valid`: the document is valid. `may_write`: role and ownership allow the caller to write it. `errors`: all errors
    by path of the field; errors without a field are under `document`. If the document is invalid, `document` is null,
    and `words`, `fires` and `year` come from its spec if that is readable. `fires`: the next occurrences, including
    skipped ones; the `due` of a new schedule has no jitter. `changes`: effect of an update on fires. `policies`: the
    policies of the next run.
    """

    valid: bool
    may_write: bool
    errors: Mapping[str, tuple[str, ...]]
    document: Object | None
    words: str | None
    warnings: tuple[str, ...]
    fires: tuple[PreviewRow, ...]
    year: Year | None
    changes: FireChanges | None
    policies: RunPolicies | None


class Revision(Answer, frozen=True, kw_only=True):
    """A stored definition of a schedule. `principal` wrote it; `note` is the reason, if still known.

    The document contains secrets by name only. `broken`: cause, if the stored definition is damaged; `document` is then
    empty.
    """

    revision: int
    recorded_at: Time
    principal: str | None
    note: str | None
    document: Object
    broken: str | None = None


class RevisionList(Answer, frozen=True, kw_only=True):
    schedule_id: str
    revisions: tuple[Revision, ...]
    next_page_token: str | None


class RevisionField(Answer, frozen=True, kw_only=True):
    """A changed field. `path` is dotted. null: the field is absent. Long values are truncated and shown as text."""

    path: str
    before: Any
    after: Any


class RevisionComparison(Answer, frozen=True, kw_only=True, rename={"before": "from", "after": "to"}):
    """Differences between two definitions: fields and future fires. `changes` is null if one of them is no longer
    valid.
    """

    schedule_id: str
    before: int
    after: int
    fields: tuple[RevisionField, ...]
    changes: FireChanges | None


class ConditionTestBody(Body, frozen=True, kw_only=True):
    """A condition and its `context`, or the schedule whose current context to use. Default: the context of a schedule
    without runs.
    """

    OTHER_NAMES: ClassVar = {"pre_dispatch_condition": "condition", "filter": "condition"}

    condition: Any = None
    schedule_id: Name | None = None
    context: Any = None
    namespace: Name | None = None


class ConditionFinding(Answer, frozen=True, kw_only=True):
    """Result of one clause. `found` false: the value is absent, which is different from null. A long `value` or
    `actual` is truncated and shown as text.
    """

    path: str
    operator: Operator
    value: Any
    found: bool
    actual: Any
    holds: bool
    sentence: str


class ConditionTest(Answer, frozen=True, kw_only=True):
    """Result of a condition, by clause. An invalid condition does not hold, and `error` has the cause.

    `context`: the evaluated context; null with `context_omitted`: too large to show. It contains the signal if the
    condition reads it; `signal_error` has the cause if the signal is null.
    """

    holds: bool
    error: str | None
    findings: tuple[ConditionFinding, ...]
    context: Any
    warnings: tuple[str, ...] = ()
    signal_error: str | None = None
    context_omitted: bool = False
