"""The route that tests a condition; it writes nothing."""

from __future__ import annotations

from typing import Final

from horarium.api.answers import Reply
from horarium.api.requests import CallerOf, Document, ResourcesOf, same_namespace
from horarium.api.routing import READ, Routes
from horarium.condition import ClauseResult, Operator
from horarium.operations import condition_tests
from horarium.schedule.clause_words import tell_clause
from horarium.wire.answer import encode
from horarium.wire.bodies import read_body
from horarium.wire.drafts import ConditionFinding, ConditionTest, ConditionTestBody

routes = Routes("/api/conditions", tag="previews")

MAX_CONTEXT_BYTES: Final = 64 * 1_024


@routes(
    "POST",
    "/test",
    needs=READ,
    summary="Test a condition",
    body=ConditionTestBody,
    sends={"condition": {"/last_24h_stats/failed": {"lt": 3}}, "schedule_id": "nightly-report"},
    answer=ConditionTest,
    example=ConditionTest(
        holds=True,
        error=None,
        findings=(
            ConditionFinding(
                path="/last_24h_stats/failed",
                operator=Operator.LT,
                value=3,
                found=True,
                actual=1,
                holds=True,
                sentence="/last_24h_stats/failed is less than 3: it is 1",
            ),
        ),
        context={"prior_run_result": None, "last_24h_stats": {"succeeded": 21, "failed": 1, "total": 22}},
    ),
    repeatable=False,  # it writes nothing
)
def test_condition(resources: ResourcesOf, caller: CallerOf, body: Document) -> Reply:
    """Evaluates the condition on `context`, or on the current context of the schedule. Returns the value that each
    clause found.
    """
    asked = read_body(ConditionTestBody, body)
    same_namespace(caller, asked.namespace)
    tried = condition_tests.try_condition(
        resources, caller, asked.condition, schedule_id=asked.schedule_id, context=asked.context
    )
    fits = len(encode(tried.context)) <= MAX_CONTEXT_BYTES
    return Reply(
        ConditionTest(
            holds=tried.holds,
            error=tried.error,
            findings=tuple(map(_shown, tried.findings)),
            context=tried.context if fits else None,
            warnings=tried.warnings,
            signal_error=tried.signal_error,
            context_omitted=not fits,
        )
    )


def _shown(found: ClauseResult) -> ConditionFinding:
    told = tell_clause(found)
    return ConditionFinding(
        path=found.pointer,
        operator=found.operator,
        value=told.wanted,
        found=found.found,
        actual=told.seen,
        holds=found.holds,
        sentence=told.sentence,
    )
