"""`horarium cluster` at a terminal: tables, what is worth a word, and how it ends."""

from __future__ import annotations

import json

import pytest
from cli.served import Server

from horarium.platform.cli import waiting
from horarium.platform.database import processes
from horarium.platform.database.processes import About, Process

ENGINE = ("api", "ticker", "janitor", "dispatcher", "follower", "advancer", "deliverer")


def beat(server: Server, owner: str, *roles: str, schema: str) -> None:
    horarium = server.service
    process = Process(About("machine", 7, roles, "1.0.0", schema, horarium.now), {"ticker": horarium.now})
    horarium.resources.database.write(lambda c: processes.beat_process(c, owner, process, horarium.now))


def test_processes_are_shown_with_their_roles_and_what_is_wrong_is_said(server: Server) -> None:
    schema = json.loads(server.ask("cluster", "-o", "json").out)["schema_revision"]
    beat(server, "machine:7:a", *ENGINE, schema=schema)
    answer = server.ask("cluster")
    assert (answer.code, answer.err) == (0, "")
    head, row, *rest = answer.out.splitlines()
    assert head.split()[:4] == ["Process", "State", "Roles", "Version"]
    assert row.split()[:6] == ["machine:7:a", "alive", "api", "engine", "1.0.0", schema]
    assert "oldest ready run: none" in rest
    beat(server, "machine:8:b", "ticker", schema="0001")
    answer = server.ask("cluster")
    assert (answer.code, answer.err) == (1, f"the schema is at {schema}; other revision expected by machine:8:b\n")


def test_it_is_shown_again_until_ctrl_c(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(waiting, "pause", pause)
    answer = server.ask("cluster", "--watch", "-o", "jsonl")
    assert answer.code == 0
    assert [json.loads(line)["processes"] for line in answer.out.splitlines()] == [[], []]
    assert server.ask("cluster", "-w", "-o", "json").code == 2
