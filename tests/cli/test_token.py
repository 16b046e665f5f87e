"""`horarium token`: what is printed is the token, and it opens what its role says."""

from __future__ import annotations

import json

from cli.served import Server


def test_the_token_alone_is_on_stdout(server: Server) -> None:
    answer = server.ask("token", "create", "ci", "--role", "viewer")
    assert answer.out.strip().startswith("hor_")
    assert answer.out.count("\n") == 1
    assert answer.out.strip() not in answer.err
    assert server.ask("schedule", "list", "--token", answer.out.strip()).code == 0


def test_a_revoked_token_opens_nothing(server: Server) -> None:
    made = json.loads(server.told("token", "create", "ci", "--role", "viewer", "-o", "json"))
    server.told("token", "revoke", made["token_id"])
    assert server.ask("schedule", "list", "--token", made["secret"]).code == 4


def test_no_list_shows_a_secret(server: Server) -> None:
    secret = server.told("token", "create", "ci", "--role", "viewer").strip()
    for output in ("table", "json", "jsonl", "yaml"):
        assert secret not in server.told("token", "list", "-o", output)


def test_a_token_belongs_to_its_namespace(server: Server) -> None:
    server.told("namespace", "create", "staging")
    theirs = server.told("token", "create", "ci", "--role", "viewer", "--namespace", "staging").strip()
    assert server.ask("schedule", "list", "--token", theirs, "--namespace", "staging").code == 0
    assert server.ask("schedule", "list", "--token", theirs, "--namespace", "default").code == 5


def test_a_token_speaks_for_its_own_namespace_where_none_is_named(server: Server) -> None:
    server.told("namespace", "create", "staging")
    theirs = server.told("token", "create", "ci", "--role", "viewer", "--namespace", "staging").strip()
    assert json.loads(server.told("run", "list", "--token", theirs, "-o", "json"))["namespace"] == "staging"
    assert server.ask("run", "list", "--token", theirs).err == "no runs in namespace staging\n"
    assert json.loads(server.told("run", "list", "-o", "json"))["namespace"] == "default"


def test_a_token_that_would_have_expired_already_is_refused(empty_server: Server) -> None:
    answer = empty_server.ask("token", "create", "ci", "--role", "viewer", "--expires-at", "2020-01-01T00:00:00Z")
    assert (answer.code, answer.out, answer.err) == (2, "", "error: --expires-at: must be in the future\n")


def test_an_empty_list_is_talk(empty_server: Server) -> None:
    answer = empty_server.ask("token", "list")
    assert (answer.code, answer.out, answer.err) == (0, "", "no tokens\n")


def test_a_rotation_prints_the_new_secret_alone(server: Server) -> None:
    made = json.loads(server.told("token", "create", "ci", "--role", "viewer", "-o", "json"))
    answer = server.ask("token", "rotate", made["token_id"], "--overlap", "0")
    assert (answer.out.strip().startswith("hor_"), answer.out.count("\n")) == (True, 1)
    assert server.ask("schedule", "list", "--token", answer.out.strip()).code == 0
    assert server.ask("schedule", "list", "--token", made["secret"]).code == 4
