"""Bodies and responses of drafts, revisions, condition tests and bulk changes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from horarium.condition import Operator
from horarium.core.document.states import RunState, Status
from horarium.features.runs.model import RunPolicies
from horarium.features.schedules.model import PreviewRow, Year
from horarium.platform.bodies import Body, Moment, Name, Note, Whole, ZoneName
from horarium.platform.wire import Answer, Object, Time


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


MAX_AT_ONCE = 100
"""Maximum schedules or runs of one request. Each is a separate transaction while the client waits."""


class BulkAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    TRIGGER = "trigger"
    LABEL = "label"
    DELETE = "delete"


class StopAction(StrEnum):
    CANCEL = "cancel"
    TERMINATE = "terminate"


class BulkOutcome(StrEnum):
    """Outcome of a bulk change of one schedule."""

    UPDATED = "updated"
    PAUSED = "paused"
    RESUMED = "resumed"
    DELETED = "deleted"
    TRIGGERED = "triggered"
    BUFFERED = "buffered"
    BUFFER_FULL = "buffer_full"
    SKIPPED = "skipped"
    UNCHANGED = "unchanged"
    CANCELLED = "cancelled"
    TERMINATED = "terminated"
    REQUESTED = "cancel_requested"
    PLANNED = "planned"  # a dry run
    FAILED = "failed"  # this one could not be done; the others were


class BulkChange(Answer, frozen=True, kw_only=True):
    """Outcome for one schedule. `reason` and `message` are set if nothing changed."""

    schedule_id: str
    outcome: BulkOutcome
    status: Status | None
    run_id: str | None = None
    state: RunState | None = None
    reason: str | None = None
    message: str | None = None


class BulkChanges(Answer, frozen=True, kw_only=True):
    """Outcomes of a bulk change. `next_page_token` continues with the schedules that match the same filter.

    `until`: time at which the pauses end. Send it with the next page instead of a duration, so that all pauses end at
    the same time.
    """

    namespace: str
    action: BulkAction
    dry_run: bool
    outcomes: tuple[BulkChange, ...]
    next_page_token: str | None
    until: Time | None = None


class BulkStop(Answer, frozen=True, kw_only=True):
    """Outcome for one run."""

    run_id: str
    schedule_id: str | None
    outcome: BulkOutcome
    state: RunState | None
    reason: str | None = None
    message: str | None = None


class BulkStops(Answer, frozen=True, kw_only=True):
    namespace: str
    action: StopAction
    dry_run: bool
    outcomes: tuple[BulkStop, ...]
    next_page_token: str | None


Ids = Annotated[tuple[str, ...], Meta(min_length=1, max_length=MAX_AT_ONCE)]
Labels = Annotated[Mapping[str, str], Meta(max_length=20)]
NewLabels = Annotated[Mapping[str, str | None], Meta(min_length=1, max_length=20)]
Part = Annotated[str, Meta(min_length=1, max_length=200)]
PageToken = Annotated[str, Meta(max_length=8_192)]


class ScheduleChoice(Body, frozen=True, kw_only=True):
    """Filter of schedules. All given conditions must match. `name_contains` matches a part of the ID or name."""

    OTHER_NAMES: ClassVar = {"schedule_ids": "ids", "text": "name_contains"}

    ids: Ids | None = None
    labels: Labels | None = None
    name_contains: Part | None = None
    status: Status | None = None


class BulkBody(Body, frozen=True, kw_only=True):
    """A bulk change. An empty filter requires `all`. With the action `label`, `labels` are added; null removes a label.
    A local time in `until` requires a `timezone`.
    """

    OTHER_NAMES: ClassVar = {"note": "reason"}

    action: BulkAction
    filter: ScheduleChoice | None = None
    all: bool = False
    labels: NewLabels | None = None
    until: Moment | None = None
    timezone: ZoneName | None = None
    reason: Note | None = None
    dry_run: bool = False
    limit: Whole = MAX_AT_ONCE
    next_page_token: PageToken | None = None
    namespace: Name | None = None


class RunChoice(Body, frozen=True, kw_only=True):
    """Filter of runs that have not ended. `labels` are those of their schedules."""

    OTHER_NAMES: ClassVar = {"run_ids": "ids", "state": "states"}

    ids: Ids | None = None
    schedule_ids: Ids | None = None
    labels: Labels | None = None
    states: Ids | None = None


class BulkRunsBody(Body, frozen=True, kw_only=True):
    action: StopAction
    filter: RunChoice | None = None
    all: bool = False
    dry_run: bool = False
    limit: Whole = MAX_AT_ONCE
    next_page_token: PageToken | None = None
    namespace: Name | None = None
