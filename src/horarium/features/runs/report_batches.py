"""Record many reports with a few statements, and answer each.

Reports about different runs go into one transaction. Those about one run follow each other, each in the next
transaction, so that every one is judged on what the one before it left. What is out of the ordinary (a run that
is not found, one that waits for approval) is reported by itself, and answered as it would be there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from horarium.core.document.definition import Definition
from horarium.core.document.states import FINAL, RunState
from horarium.core.lifecycle.live_run import NO_RULES, Rules, rules_for
from horarium.core.lifecycle.outcome import Change, Nothing, NothingCause, Reported
from horarium.core.lifecycle.react import react
from horarium.errors import HorariumError, InvalidDefinition
from horarium.features.resources import Resources
from horarium.features.runs import claim_rows, reports
from horarium.features.runs import rows as runs_read
from horarium.features.runs.model import MAX_REPORTS
from horarium.features.runs.reports import Answered, Report
from horarium.features.runs.transition_rows import change_runs
from horarium.features.runs.work_rows import RunWork, find_works, states_of
from horarium.features.schedules.creation import redactor_for
from horarium.instant import Instant
from horarium.platform.caller import Caller, run_principal
from horarium.platform.database import Connection
from horarium.platform.database.errors import DataError, is_fault_of_a_row
from horarium.platform.database.statements import from_text
from horarium.platform.database.wakeups import READY
from horarium.platform.errors import OperationError, OperationRefused, RunNotFound, Unauthorized
from horarium.platform.ids import parse_id
from horarium.platform.wire import Permission, ReportOutcome, Role

Outcome: TypeAlias = Answered | HorariumError
"""The outcome of one report, or its error."""


class Unstorable(OperationRefused):
    """The report was heard, and cannot be written down; it will be as impossible the next time."""

    reason = "unstorable_report"
    status = 422


@dataclass(frozen=True, slots=True)
class Carrier:
    """Sender of the reports. `by_tokens`: the caller has no token itself.

    Each report must then show the token of its run, and counts as sent by the target of that run, in the namespace of
    that run.
    """

    caller: Caller
    by_tokens: bool = False


@dataclass(frozen=True, slots=True)
class _Item:
    """One report of a request; `place` is where it stands there."""

    place: int
    run_id: bytes
    named: str
    report: Report


@dataclass(frozen=True, slots=True)
class _JudgedReport:
    """A report that is judged with others: who says it, about what, in which words, and by which rules."""

    item: _Item
    run: RunWork
    speaker: Caller
    said: Reported
    rules: Rules


def report_many(resources: Resources, carrier: Carrier, documents: Sequence[object]) -> list[Outcome]:
    """One outcome for each document, in their order; raises InvalidDefinition for none at all, or too many."""
    carrier.caller.require(Permission.WORK)
    if not 0 < len(documents) <= MAX_REPORTS:
        raise InvalidDefinition({"reports": [f"must be an array of 1 to {MAX_REPORTS} reports"]})
    outcomes: dict[int, Outcome] = {}
    waiting: list[_Item] = []
    for place, document in enumerate(documents):
        try:
            waiting.append(_parsed(place, document))
        except HorariumError as wrong:
            outcomes[place] = wrong
    while waiting:
        first = {item.run_id: item for item in reversed(waiting)}
        together = sorted(first.values(), key=lambda item: item.run_id)
        outcomes |= _taken(resources, carrier, together)
        taken = {item.place for item in together}
        waiting = [item for item in waiting if item.place not in taken]
    return [outcomes[place] for place in range(len(documents))]


def _parsed(place: int, document: object) -> _Item:
    if not isinstance(document, Mapping):
        raise InvalidDefinition({"reports": ["each report must be an object"]})
    named = document.get("run_id")
    if not isinstance(named, str):
        raise InvalidDefinition({"run_id": ["is required and must be a string"]})
    said: dict[Any, Any] = {name: value for name, value in document.items() if name != "run_id"}
    report = reports.parse_report(said)
    try:
        return _Item(place, parse_id(named, "run_id"), named, report)
    except InvalidDefinition:
        raise RunNotFound(named[:64]) from None


def _taken(resources: Resources, carrier: Carrier, items: Sequence[_Item]) -> dict[int, Outcome]:
    """At most one of each run. What cannot be written down is looked for by halves, and is alone in the end."""
    if len(items) == 1:
        return {items[0].place: _alone(resources, carrier, items[0])}
    try:
        written = resources.database.write(lambda connection: _report_outcomes(resources, connection, carrier, items))
    except Exception as wrong:  # whatever else it is hits all of them alike
        if not is_fault_of_a_row(wrong):
            raise
        middle = len(items) // 2
        return _taken(resources, carrier, items[:middle]) | _taken(resources, carrier, items[middle:])
    for outcome in written.values():
        if isinstance(outcome, Answered) and outcome.outcome is ReportOutcome.RECORDED and outcome.state in FINAL:
            resources.telemetry.ended(outcome.state)
    apart = {item.place: _alone(resources, carrier, item) for item in items if item.place not in written}
    return written | apart


def _alone(resources: Resources, carrier: Carrier, item: _Item) -> Outcome:
    try:
        speaker = carrier.caller if not carrier.by_tokens else _target(resources, carrier.caller, item)
        return reports.report(resources, speaker, item.named, item.report)
    except Exception as wrong:
        if isinstance(wrong, HorariumError) and not isinstance(wrong, DataError):
            return _own(wrong)
        if not is_fault_of_a_row(wrong):
            raise
        return Unstorable(f"the report cannot be stored: {type(wrong).__name__}")


def _own(wrong: HorariumError) -> HorariumError:
    """Return an error that concerns this report alone; raise any other, since the whole request must be repeated."""
    if isinstance(wrong, (OperationError, ValueError)) or is_fault_of_a_row(wrong):
        return wrong
    raise wrong


def _target(resources: Resources, caller: Caller, item: _Item) -> Caller:
    """The target of the run that the token is of, wherever that is."""
    if not reports.proves(resources, item.run_id, item.report):
        raise Unauthorized("this token does not belong to this run")
    namespace = resources.database.read(lambda connection: runs_read.namespace_of(connection, item.run_id))
    if namespace is None:
        raise RunNotFound(item.named[:64])
    return _as_target(caller, item.run_id, namespace)


def _as_target(caller: Caller, run_id: bytes, namespace: str) -> Caller:
    return replace(caller, principal=run_principal(run_id), role=Role.AGENT, namespace=namespace)


# ── one transaction ──────────────────────────────────────────────────────────────────────────────────


def _report_outcomes(
    resources: Resources, connection: Connection, carrier: Carrier, items: Sequence[_Item]
) -> dict[int, Outcome]:
    """The outcomes by place; those that are missing are to be reported by themselves."""
    found = {run.run_id: run for run in find_works(connection, [item.run_id for item in items])}
    outcomes: dict[int, Outcome] = {}
    heard: list[_JudgedReport] = []
    plain = [(item, found[item.run_id]) for item in items if item.run_id in found]
    definitions = resources.definitions.load(connection, (run for _, run in plain))
    for item, run in plain:
        speaker = _speaker(resources, carrier, item, run)
        if speaker is None or run.state == RunState.AWAITING_APPROVAL:
            continue
        try:
            said = reports.shown(resources, speaker, run.run_id, item.report)
            said, rules = _defined(resources, connection, run, said, definitions[run.run_id])
        except HorariumError as wrong:
            outcomes[item.place] = _own(wrong)
        else:
            heard.append(_JudgedReport(item, run, speaker, said, rules))
    return outcomes | _recorded(resources, connection, heard)


def _speaker(resources: Resources, carrier: Carrier, item: _Item, run: RunWork) -> Caller | None:
    """Determine the caller of a report; None = handle it as a single report, which says why it is refused."""
    proven = reports.proves(resources, run.run_id, item.report)
    if carrier.by_tokens:
        return _as_target(carrier.caller, run.run_id, run.namespace) if proven else None
    known = run.namespace == carrier.caller.namespace and (proven or carrier.caller.sees(run))
    return carrier.caller if known else None


def _defined(
    resources: Resources, connection: Connection, run: RunWork, said: Reported, definition: Definition | Exception
) -> tuple[Reported, Rules]:
    if isinstance(definition, Exception):
        return said, NO_RULES
    secrets = redactor_for(resources, connection, run.namespace, definition, from_text(run.inputs))
    return reports.without_secrets(said, secrets), rules_for(run.kind, definition.retry, definition.limits)


def _recorded(resources: Resources, connection: Connection, heard: Sequence[_JudgedReport]) -> dict[int, Outcome]:
    now = resources.clock.now()
    refused: dict[bytes, HorariumError] = {}

    def judge(each: _JudgedReport, run: RunWork) -> Change:
        try:
            return react(run, each.said, each.rules, now)
        except HorariumError as wrong:  # about this run alone
            refused[run.run_id] = wrong
            return Nothing(NothingCause.NOT_SO)

    judged = [(each.run.run_id, lambda run, each=each: judge(each, run)) for each in heard]
    by = {each.run.run_id: each.speaker.context() for each in heard}
    changes = {
        each.run.run_id: each.change for each in change_runs(connection, resources.known, judged, now=now, by=by)
    }
    outcomes: dict[int, Outcome] = {}
    came: dict[int, tuple[_JudgedReport, ReportOutcome]] = {}
    for each in heard:
        run_id, change = each.run.run_id, changes.get(each.run.run_id, Nothing(NothingCause.NOT_SO))
        try:
            if run_id in refused:
                raise refused[run_id]
            came[each.item.place] = each, _came_of(connection, each, change, now)
        except HorariumError as wrong:
            outcomes[each.item.place] = wrong
    resources.database.notify(connection, READY)  # an end may have released another, a failure waits for its retry
    states = states_of(connection, [each.run.run_id for each, _ in came.values()])
    for place, (each, outcome) in came.items():
        # One that has gone to the archive meanwhile is as it was.
        state = states.get(each.run.run_id) or RunState(each.run.state)
        outcomes[place] = Answered(each.run.run_id, outcome, state)
    return outcomes


def _came_of(connection: Connection, each: _JudgedReport, change: Change, now: Instant) -> ReportOutcome:
    speaker, run = each.speaker, each.run
    if each.said.proven and speaker.agent_id is not None and not speaker.sees(run):
        claim_rows.note_worker(connection, run.run_id, speaker.agent_id)
    return reports.outcome_of(connection, speaker, run.run_id, each.said, change, now)
