"""`horarium approval`: what waits for a yes, and how it is said."""

from __future__ import annotations

import json
import re
from io import BytesIO, TextIOWrapper

import pytest
import sqlalchemy as sa
from cli.served import Server

from horarium.platform.database.tables import approvals


@pytest.fixture
def editor(server: Server) -> tuple[str, ...]:
    """Somebody else than who asks."""
    return ("--token", server.service.client().issue_token("editor", "operator").secret)


def question(server: Server, name: str = "payouts") -> str:
    """The id of the approval that a run of a new schedule waits for."""
    client = server.service.client()
    client.create_schedule(
        schedule_id=name,
        intervals=[{"every": "PT1H"}],
        action={"kind": "workflow", "workflow_type": "w", "queue": "q", "input": {"day": 1}},
        approval_policy={"requires_approval": True},
    )
    client.trigger_schedule(name)
    [asked] = client.list_approvals(schedule_id=name)
    return asked.approval_id


def test_a_yes_is_said_after_it_was_shown_what_it_is_for(server: Server, editor: tuple[str, ...]) -> None:
    asked = question(server)
    assert asked in server.told("approval", "list")
    assert asked in server.told("approval", "list", "--mine", *editor)
    assert server.ask("approval", "list", "--mine").err == "no approvals in namespace default\n"
    assert '{"day": 1}' in server.told("approval", "show", asked)
    assert "not allowed: " in server.told("approval", "show", asked)
    assert "allow_requester" in server.told("approval", "show", asked)
    assert "allowed\n" in server.told("approval", "show", asked, *editor)

    unasked = server.ask("approval", "approve", asked, *editor)
    assert (unasked.code, "--yes" in unasked.err, '{"day": 1}' in unasked.err) == (2, True, True)
    assert server.ask("approval", "approve", asked, "--yes").code == 4
    done = server.told("approval", "approve", asked, "--reason", "good", "--yes", *editor)
    assert done == f"{asked}: approved\n"
    assert server.ask("approval", "approve", asked, "--yes", *editor).code == 1
    assert "approve by editor" in server.told("approval", "show", asked)
    assert asked in server.told("approval", "list", "--status", "approved")
    assert server.ask("approval", "list", "--status", "nonsense").err.startswith("error: --status: ")


def test_the_agent_its_url_and_the_prompt_are_shown_before_the_decision(
    server: Server, editor: tuple[str, ...]
) -> None:
    client = server.service.client()
    client.put_agent("writer", name="Writer", url="https://agents.example.com/w", token="t0p-secret-token")
    client.create_schedule(
        schedule_id="brief",
        name="Morning brief",
        intervals=[{"every": "PT1H"}],
        action={"kind": "prompt", "prompt": "Write the brief.\nKeep it short."},
        assignee_id="writer",
        approval_policy={"requires_approval": True},
    )
    run_id = client.trigger_schedule("brief").run_id
    [asked] = client.list_approvals(schedule_id="brief")
    shown = server.told("approval", "show", asked.approval_id)
    lines = [line.split(maxsplit=1) for line in shown.splitlines()]
    for line in (
        ["schedule", "brief (Morning brief)"],
        ["agent", "writer (Writer)"],
        ["url", "https://agents.example.com/w"],
        ["prompt", "Write the brief."],
    ):
        assert line in lines
    assert "Keep it short." in shown
    assert "t0p-secret-token" not in shown
    unasked = server.ask("approval", "approve", asked.approval_id, *editor)
    assert "https://agents.example.com/w" in unasked.err
    for listed in (server.told("approval", "list"), server.told("run", "list")):
        assert re.search(r"brief +Morning brief ", listed)
    run = server.told("run", "show", str(run_id))
    assert "brief (Morning brief)" in run
    assert "agent:writer (Writer)" in run


def test_a_yes_may_change_the_inputs_and_a_no_ends_the_run(server: Server, editor: tuple[str, ...]) -> None:
    asked = question(server)
    for wrong in ("[", "[]"):
        assert server.ask("approval", "modify", asked, "--set", wrong, "--yes", *editor).code == 2
    changed = server.told("approval", "modify", asked, "--set", '{"day": 2}', "--yes", *editor, "-o", "json")
    assert json.loads(changed)["status"] == "modified"
    [run] = [run for run in server.service.runs() if run.schedule_id == "payouts"]
    assert json.loads(server.told("run", "show", run.run_id, "-o", "json"))["inputs"] == {"day": 2}

    late = question(server, "late")
    server.service.advance(hours=25)
    answer = server.ask("approval", "approve", late, "--yes", *editor)
    assert (answer.code, answer.out) == (1, "")

    refused = question(server, "other")
    assert server.told("approval", "reject", refused, "--yes", *editor) == f"{refused}: rejected\n"
    [run] = [run for run in server.service.runs() if run.schedule_id == "other"]
    assert run.state == "rejected"


def test_a_run_is_approved_by_its_own_id_too(server: Server, editor: tuple[str, ...]) -> None:
    question(server, "one")
    question(server, "two")
    one, two = server.service.runs()
    assert "approved" in server.told("run", "approve", one.run_id, "--yes", *editor)
    assert "rejected" in server.told("run", "reject", two.run_id, "--yes", *editor)
    assert server.ask("run", "approve", two.run_id, "--yes", *editor).code == 1


def test_several_are_decided_at_once_and_each_has_its_outcome(server: Server, editor: tuple[str, ...]) -> None:
    ids = [question(server, name) for name in ("a", "b")]
    done = server.ask("approval", "approve", *ids, "--yes", *editor)
    assert (done.code, [line.split()[1] for line in done.out.splitlines()[1:]]) == (0, ["approved", "approved"])
    again = server.ask("approval", "approve", *ids, "--yes", *editor)
    assert again.code == 1
    assert "was already approved by editor" in again.out


def test_a_standing_yes_is_made_listed_and_taken_back(server: Server, editor: tuple[str, ...]) -> None:
    server.service.create(schedule_id="s", cron_expressions=["@hourly"], workflow_type="w")
    flags = ("--gate", "publish", "--until", "7d", "--max-uses", "3", "--reason", "away")
    made = server.told("approval", "standing", "create", "--schedule", "s", *flags, *editor)
    standing_id = made.split(":")[0]
    assert standing_id in server.told("approval", "standing", "list")
    assert "deleted" in server.ask("approval", "standing", "delete", standing_id, *editor).err
    assert server.ask("approval", "standing", "list").err == "no standing\n"
    for wrong in ([], ["--schedule", "s", "--workflow", "w"]):
        assert server.ask("approval", "standing", "create", "--gate", "publish", *wrong).code == 2


@pytest.mark.parametrize("verb", ["show", "approve", "reject"])
def test_what_is_not_there_is_not_found(empty_server: Server, verb: str) -> None:
    yes = [] if verb == "show" else ["--yes"]
    assert empty_server.ask("approval", verb, "01JQ8Z6H4M8X2V0T1R3S5W7Y9B", *yes).code == 5


def test_an_agent_is_told_what_it_asks(
    server: Server, editor: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = question(server)
    no_agent = server.ask("approval", "answer", plain, "the third", "--yes", *editor)
    assert (no_agent.code, "is not a question of an agent" in no_agent.err) == (1, True)
    server.service.resources.database.write(
        lambda connection: connection.execute(
            sa.update(approvals).values(question="Which quarter?", gates='["agent_input"]')
        )
    )
    assert "Which quarter?" in server.told("approval", "show", plain)
    blank = server.ask("approval", "answer", plain, " ", "--yes", *editor)
    assert (blank.code, blank.err.splitlines()[-1]) == (2, "error: TEXT: must not be blank")
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"\xff")))
    assert server.ask("approval", "answer", plain, "-", "--yes", *editor).err.endswith("error: TEXT: is not UTF-8\n")
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"the third\n")))
    done = server.told("approval", "answer", plain, "-", "--yes", *editor, "-o", "json")
    assert (json.loads(done)["status"], json.loads(done)["reply"]) == ("modified", "the third")
