"""`horarium audit`: what was done can be read, and what was done to the record is found."""

from __future__ import annotations

import json

from cli.served import Server


def force(server: Server, *statements: str) -> None:
    """As somebody with the password of the database, who takes the triggers away first."""

    def work(connection: object) -> None:
        run = connection.exec_driver_sql  # type: ignore[attr-defined]  # a connection of the store
        for (name,) in run("SELECT name FROM sqlite_master WHERE type = 'trigger'").all():
            run(f"DROP TRIGGER {name}")
        for statement in statements:
            run(statement)

    server.service.resources.database.write(work)


def test_what_an_admin_did_is_listed_with_the_door_it_came_through(server: Server) -> None:
    server.told("token", "create", "ci", "--role", "viewer")
    (entry,) = json.loads(server.told("audit", "list", "-o", "json"))["entries"]
    assert (entry["act"], entry["principal"], entry["source"]) == ("issue_token", "admin", "cli")
    assert (entry["detail"]["name"], entry["detail"]["role"], entry["address"]) == ("ci", "viewer", "127.0.0.1")
    assert "issue_token" in server.told("audit", "list", "--act", "issue_token", "--oldest")
    assert server.ask("audit", "list", "--principal", "nobody").err.startswith("no audit entries in namespace")
    viewer = server.told("token", "create", "v", "--role", "viewer").strip()
    assert server.ask("audit", "list", "--token", viewer).code == 4


def test_a_command_says_in_history_that_it_was_one(server: Server) -> None:
    server.told("schedule", "create", "nightly", "--cron", "0 2 * * *", "--workflow-type", "report")
    (made,) = server.service.client().get_schedule_history("nightly")
    assert made.payload["command_context"]["source"] == "cli"


def test_what_an_attacker_did_to_the_record_is_named(server: Server) -> None:
    """Through the server, and from the database itself."""
    for name in ("one", "two", "three"):
        server.told("token", "create", name, "--role", "viewer")
    file = ("--database", server.service.resources.database.url)
    whole = server.ask("audit", "verify")
    head = whole.err.split()[-1]
    assert (whole.code, whole.out, head[:2]) == (0, "default: intact, 3 entries\n", "3:")
    assert server.ask("audit", "verify", *file, "--namespace", "default", "--head", head).code == 0
    checkpoint = "trimmed_hash = (SELECT hash FROM audit WHERE sequence = 1), trimmed_sequence = 1"
    force(server, f"UPDATE audit_heads SET {checkpoint}")
    for where in ((), file):
        cut = server.ask("audit", "verify", *where)
        assert (cut.code, cut.out) == (0, "default: intact, 2 entries from sequence 2\n"), (
            "nobody takes it for the whole"
        )
    force(server, f"UPDATE audit_heads SET trimmed_sequence = 0, trimmed_hash = '{'0' * 64}'")
    force(server, "UPDATE audit SET principal = 'mallory' WHERE sequence = 2")
    for where in ((), file):
        broken = server.ask("audit", "verify", *where)
        assert (broken.code, broken.out) == (1, "default: entry 2 is broken: its content was changed\n")
    force(server, "DELETE FROM audit WHERE sequence > 1")
    for where in ((), file):
        broken = server.ask("audit", "verify", *where, "-o", "json")
        assert (broken.code, json.loads(broken.out)[0]["broken"]["sequence"]) == (1, 2)
    force(server, "UPDATE audit_heads SET sequence = 1, hash = (SELECT hash FROM audit)")
    assert server.ask("audit", "verify").code == 0, "those who reach all of it are found by what was kept"
    cut = server.ask("audit", "verify", "--head", head)
    assert (cut.code, cut.out) == (1, "default: entry 2 is broken: entries 2 to 3 are missing\n")


def test_a_head_that_is_none_is_refused_in_one_line(empty_server: Server) -> None:
    answer = empty_server.ask("audit", "verify", "--head", "3")
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert answer.err.startswith("error: --head: must be a sequence")
    file = empty_server.service.resources.database.url
    assert empty_server.ask("audit", "verify", "--database", file, "--head", f"3:{'a' * 64}").code == 2
