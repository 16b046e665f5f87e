"""The route that does an ended run once more."""

from __future__ import annotations

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.requests import CallerOf, Document, ResourcesOf, same_namespace
from horarium.api.routing import OPERATE, Routes
from horarium.ids import id_text
from horarium.operations import reruns
from horarium.schedule.run import RunState
from horarium.wire.bodies import RerunBody, read_body
from horarium.wire.outcomes import TriggerOutcome
from horarium.wire.runs import RunRerun

routes = Routes("/api/runs/{run_id}", tag="runs")


@routes(
    "POST",
    "/rerun",
    needs=OPERATE,
    summary="Rerun an ended run",
    body=RerunBody,
    sends={"reason": "the target was down"},
    answer=RunRerun,
    example=RunRerun(
        rerun_of=examples.RUN_ID,
        run_id=examples.UID,
        schedule_id="nightly-report",
        namespace="default",
        outcome=TriggerOutcome.TRIGGERED,
        workflow_id=f"schedule:nightly-report:manual:{examples.UID}",
        state=RunState.READY,
    ),
)
def rerun_run(resources: ResourcesOf, caller: CallerOf, run_id: str, body: Document) -> Reply:
    """Creates a run for the same occurrence with the same input and definition. Checks the same guards as a manual
    trigger. Changed `inputs` require the permission `write`.
    """
    asked = read_body(RerunBody, body)
    same_namespace(caller, asked.namespace)
    done = reruns.rerun(
        resources,
        caller.because(asked.reason).asking_to_skip(asked.approval_status, asked.skip_approval),
        run_id,
        overlap_policy=asked.overlap_policy,
        even_if_paused=asked.even_if_paused,
        inputs=asked.inputs,
    )
    return Reply(
        RunRerun(
            rerun_of=id_text(done.rerun_of),
            run_id=None if done.run_id is None else id_text(done.run_id),
            schedule_id=done.schedule_id,
            namespace=caller.namespace,
            outcome=done.outcome,
            workflow_id=done.instance_id,
            state=done.state,
            reason=done.reason,
            detail=done.detail,
            buffer_depth=done.buffer_depth,
        )
    )
