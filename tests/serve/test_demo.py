"""The workflow of the demonstration: it waits for a yes, which whoever tries it can give with the one token."""

from __future__ import annotations

from world import START

from horarium.app import Horarium
from horarium.demo.schedules import declare_brief, put_brief
from horarium.platform.caller import internal
from horarium.testing import service


def test_the_brief_waits_for_a_yes_and_is_sent_after_it() -> None:
    app = Horarium()
    declare_brief(app)
    with service(at=START, app=app) as running:
        put_brief(running.resources, internal("demo"))
        put_brief(running.resources, internal("demo"))  # the next start of the demonstration
        running.advance(seconds=50)
        client = running.client()
        [run] = client.list_runs(workflow_id="demo-brief")  # what came meanwhile found it busy
        [asked] = client.list_approvals(mine=True)
        assert (run.state, asked.node_id, asked.gates) == ("running", "send", ("external_message",))
        client.decide_approval(asked.approval_id, "approve", input_hash=asked.input_hash)
        running.settle()
        ended = client.get_run(run.run_id)
        assert ended.state == "succeeded"
        assert ended.result["send"]["sent"].startswith("Good morning, Ada, Grace, Edsger. It is 20")
        assert ended.assignee is not None
        assert (ended.assignee.type, ended.assignee.id) == ("agent", "demo-writer")
        assert running.verify() == []
