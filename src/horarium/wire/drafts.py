"""What is answered about what a schedule would be, what it has been, and what a condition sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from horarium.condition import Operator
from horarium.wire.answer import Answer, Object, Time
from horarium.wire.bodies import Body, Name
from horarium.wire.runs import RunPolicies
from horarium.wire.schedules import PreviewRow, Year


class MovedFire(Answer, frozen=True, kw_only=True, rename={"before": "from", "after": "to"}):
    """One fire at another time: of the same day, or its nearest neighbour within a week."""

    before: Time
    after: Time


class FireChanges(Answer, frozen=True, kw_only=True):
    """All fires that come, go or move up to `until`; `bounded`: later ones were not looked at.

    As far as the spec, the attached calendars and `max_runs` say; at most a hundred changes within a year.
    """

    added: tuple[Time, ...]
    removed: tuple[Time, ...]
    moved: tuple[MovedFire, ...]
    until: Time
    bounded: bool


class ScheduleDraft(Answer, frozen=True, kw_only=True):
    """What a document would make of a schedule. Nothing is written.

    `valid` is about the document, `may_write` about whoever asks: whether role and ownership would let them write it.
    `errors` are all that a write would refuse, by the path of the field; under `document` stands what is about no
    field. Then `document` is null where it cannot be read, and words, `fires` and `year` are those of its spec alone,
    as far as that can be read. `fires` are the next occurrences, also those that would be skipped; of a new schedule
    `due` is without jitter. `changes` are those of an edit. `policies` are what the next run would be born with.
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
    """A definition that a schedule has had. `principal` wrote it, and `note` is why, where that is still known.

    What is secret is never part of it: a document holds the names of secrets. `broken` says why it cannot be read,
    where somebody has damaged it: then `document` is empty.
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
    """`path` is dotted; null = it is not there. Long values are cut and shown as text."""

    path: str
    before: Any
    after: Any


class RevisionComparison(Answer, frozen=True, kw_only=True, rename={"before": "from", "after": "to"}):
    """Which fields differ between two definitions of a schedule, and which coming fires.

    `changes` is null where one of them cannot be planned any more.
    """

    schedule_id: str
    before: int
    after: int
    fields: tuple[RevisionField, ...]
    changes: FireChanges | None


class ConditionTestBody(Body, frozen=True, kw_only=True):
    """A condition, and what to try it on: a `context`, or the one that a schedule would see now.

    With neither it is that of a schedule that has had no run.
    """

    OTHER_NAMES: ClassVar = {"pre_dispatch_condition": "condition", "filter": "condition"}

    condition: Any = None
    schedule_id: Name | None = None
    context: Any = None
    namespace: Name | None = None


class ConditionFinding(Answer, frozen=True, kw_only=True):
    """One clause and what it saw. `found` false = nothing is there, which is not null.

    A long `value` or `actual` is cut and shown as text.
    """

    path: str
    operator: Operator
    value: Any
    found: bool
    actual: Any
    holds: bool
    sentence: str


class ConditionTest(Answer, frozen=True, kw_only=True):
    """Whether a condition holds, clause by clause. One that cannot be read does not, and `error` says why.

    `context` is what it was tried on; null with `context_omitted` = that is too large to show. The signal is in it
    where the condition reads it, and `signal_error` says why that is null.
    """

    holds: bool
    error: str | None
    findings: tuple[ConditionFinding, ...]
    context: Any
    warnings: tuple[str, ...] = ()
    signal_error: str | None = None
    context_omitted: bool = False
