"""A declared operation has a command, from its options to its output; a hand-written command wins."""

from __future__ import annotations

import json

import pytest
import typer
from cli.served import Answer, Server
from typer.main import get_command

from horarium.platform.cli.program import LaterModule, add_default_commands, make_later
from horarium.platform.cli.remote import Remote, with_remote

SAMPLE = LaterModule("cli.sample_operations").SampleOperations


@with_remote
def delete_by_hand(remote: Remote) -> None:
    """Delete by hand."""
    typer.echo(f"by hand in {remote.namespace}")


def run(server: Server, *typed: str, by_hand: bool = False) -> Answer:
    app = typer.Typer(no_args_is_help=True, add_completion=False)
    if by_hand:
        app.command("delete")(delete_by_hand)
    add_default_commands(app, "sample", SAMPLE)
    server.capsys.readouterr()
    program = get_command(make_later(typer.Typer(), {"sample": app}))
    code = program(["sample", *typed], prog_name="horarium", standalone_mode=False)
    return Answer(code or 0, *server.capsys.readouterr())


def told(server: Server, *typed: str) -> str:
    answer = run(server, *typed)
    assert answer.code == 0, answer.err
    return answer.out


def test_a_command_sends_its_operation_and_shows_the_answer(server: Server) -> None:
    put = json.loads(told(server, "put", "erp", "s3cret", "--hosts", "a.example", "--hosts", "b.example", "-o", "json"))
    assert (put["name"], put["hosts"], put["version"]) == ("erp", ["a.example", "b.example"], 1)
    told(server, "put", "two", "s3cret")
    listed = json.loads(told(server, "list", "--limit", "1", "-o", "json"))
    assert ([each["name"] for each in listed["secrets"]], listed["has_more"]) == (["erp"], True)
    rest = told(server, "list", "--page-token", listed["next_page_token"], "-o", "yaml")
    assert "name: two" in rest
    assert "name: erp" not in rest
    table = told(server, "list").splitlines()
    assert table[0].split("  ")[0] == "Name"
    assert [line.split()[0] for line in table[1:]] == ["erp", "two"]
    assert "outcome  deleted" in told(server, "delete", "two", "--force")
    assert "two" not in told(server, "list")


def test_a_document_is_json_and_a_query_an_option(server: Server) -> None:
    day = {"name": "days", "kind": "skip_dates", "dates": ["2026-12-24"]}
    assert json.loads(told(server, "create-day", "--set", json.dumps(day), "-o", "json"))["name"] == "days"
    shown = json.loads(told(server, "show", "days", "--year", "2026", "-o", "json"))
    assert [each["date"] for each in shown["days"]] == ["2026-12-24"]
    assert "default" in told(server, "list-owners")


def test_help_is_the_documentation_of_the_client_method(server: Server) -> None:
    lines = told(server, "put", "--help").splitlines()
    assert "Create or replace a sample." in lines
    assert "  horarium sample put erp s3cret --hosts erp.example.com" in lines
    assert "  create-day   Create." in told(server, "--help").splitlines()


def test_a_hand_written_command_wins(server: Server) -> None:
    assert run(server, "delete", by_hand=True).out == "by hand in default\n"
    listed = run(server, "--help", by_hand=True).out
    assert listed.count("  delete ") == 1
    assert "hide" not in listed


def test_a_refusal_ends_a_command_like_any_other(empty_server: Server) -> None:
    assert run(empty_server, "delete", "none").code == 5
    with pytest.raises(typer.TyperException) as usage:
        run(empty_server, "put", "x")
    assert usage.value.format_message() == "Missing argument 'VALUE'."
    wrong = run(empty_server, "put", "x", "s3cret", "--hosts", "https://a.example/x")
    assert (wrong.code, wrong.err.startswith("error: --hosts")) == (2, True)
