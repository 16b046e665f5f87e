"""Where an agent may say that there is news: only where it can reach us, and with nothing that ends a run."""

from __future__ import annotations

import pytest
from launchers.far_ends import request_for

from horarium.core.lifecycle.outcome import ReportTokens, push_token
from horarium.launchers.a2a.dialect import Push
from horarium.launchers.a2a.messages import push_for
from horarium.launchers.launcher import AgentLine
from horarium.platform.ids import new_id

TOKEN = ReportTokens(b"k" * 32).make(new_id(), 0)


@pytest.mark.parametrize(
    ("ours", "agent", "expected"),
    [
        ("https://horarium.test", "https://agent.test/rpc", True),
        ("https://horarium.test", "http://127.0.0.1:9101", True),
        ("http://127.0.0.1:8765", "http://127.0.0.1:9101", True),
        ("http://localhost:8765", "http://[::1]:9101", True),
        ("http://127.0.0.1:8765", "https://agent.test/rpc", False),
        ("http://[::1]:8765", "https://agent.test/rpc", False),
        ("http://0.0.0.0:8765", "https://10.0.0.1/rpc", False),
        ("http://10.0.0.2:8765", "https://10.0.0.1/rpc", True),
        ("http://127.0.0.1:8765", None, False),
        (None, "https://agent.test/rpc", False),
    ],
)
def test_an_agent_is_told_our_address_where_it_can_reach_it(
    ours: str | None, agent: str | None, expected: bool
) -> None:
    request = request_for(
        "prompt",
        agent=AgentLine("writer", agent),
        report_url=None if ours is None else f"{ours}/api/runs/run-1/report",
        report_token=TOKEN,
    )
    push = Push(f"{ours}/api/runs/run-1/pushes", push_token(TOKEN))
    assert push_for(request) == (push if expected else None)


def test_nobody_is_told_where_there_is_no_agent_and_no_token() -> None:
    url = "https://horarium.test/api/runs/run-1/report"
    assert push_for(request_for("prompt", report_url=url, report_token=TOKEN)) is None
    assert push_for(request_for("prompt", report_url=url, agent=AgentLine("writer", "https://agent.test"))) is None
