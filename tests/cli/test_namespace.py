"""`horarium namespace`: tenants are made first, and do not see each other."""

from __future__ import annotations

import json

import pytest
from cli.served import Server


def test_a_namespace_is_made_before_it_is_used(server: Server) -> None:
    assert server.ask("schedule", "list", "--namespace", "staging").code == 5
    made = json.loads(server.told("namespace", "create", "staging", "--description", "x", "-o", "json"))
    assert (made["namespace"], made["description"]) == ("staging", "x")
    assert server.ask("schedule", "list", "--namespace", "staging").code == 0


def test_a_schedule_of_another_namespace_is_not_found(server: Server) -> None:
    server.told("namespace", "create", "staging")
    create = ("schedule", "create", "a", "--every", "PT1H", "--workflow-type", "w")
    server.told(*create, "--namespace", "staging")
    assert server.ask("schedule", "describe", "a").code == 5
    server.told(*create)


def test_an_admin_of_the_installation_lists_all_namespaces(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.told("namespace", "create", "staging")
    for namespace in ("default", "staging"):
        of = ("--namespace", namespace)
        server.told("schedule", "create", "s", "--every", "PT1H", "--workflow-type", "w", "--requires-approval", *of)
        server.told("schedule", "trigger", "s", *of)
        server.told("subscription", "create", "hook", "--url", "https://x.example/", "--kind", "run_finished", *of)
    lists = {"run list": "runs", "approval list": "approvals", "subscription list": "subscriptions",
             "schedule health": "schedules"}  # fmt: skip
    for command, member in lists.items():
        shown = server.told(*command.split(), "--all-namespaces")
        assert shown.split()[0] == "Namespace", command
        rows = json.loads(server.told(*command.split(), "--all-namespaces", "-o", "json"))[member]
        assert sorted(row["namespace"] for row in rows) == ["default", "staging"], command
    paged = json.loads(server.told("run", "list", "--all-namespaces", "--limit", "1", "-o", "json"))
    assert (paged["namespace"], len(paged["runs"]), paged["has_more"]) == ("*", 1, True)
    rest = server.told("run", "list", "--all-namespaces", "--page-token", paged["next_page_token"], "-o", "json")
    assert len(json.loads(rest)["runs"]) == 1
    overview = server.ask("overview", "--all-namespaces")
    assert (overview.code, "all namespaces" in overview.err) == (0, True)
    assert "approval list --all-namespaces" in overview.out
    assert json.loads(server.told("overview", "--all-namespaces", "-o", "json"))["waiting_for_approval"] == 2
    assert '"waiting_for_approval": 2' in server.ask("health", "--all-namespaces", "-o", "json").out
    assert server.ask("run", "list", "--schedule", "s", "--all-namespaces").code == 2
    assert server.ask("schedule", "health", "s", "--all-namespaces").code == 2
    token = server.told("token", "create", "looker", "--role", "viewer", "-o", "json")
    monkeypatch.setenv("HORARIUM_TOKEN", json.loads(token)["secret"])
    for command in (*lists, "overview", "health"):
        refused = server.ask(*command.split(), "--all-namespaces")
        assert (refused.code, "admin of the installation" in refused.err) == (4, True), command


@pytest.mark.parametrize("name", ["", "with blank", "-x", "x" * 200, "ü"], ids=ascii)
def test_a_bad_name_is_refused(empty_server: Server, name: str) -> None:
    answer = empty_server.ask("namespace", "create", "--", name)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)


def test_a_namespace_is_deleted_only_if_it_is_meant(server: Server) -> None:
    server.told("namespace", "create", "staging")
    server.told("schedule", "create", "s", "--every", "PT1H", "--workflow-type", "w", "--namespace", "staging")
    for words in ([], ["--yes"], ["--force"]):
        refused = server.ask("namespace", "delete", "staging", *words)
        assert (refused.code, "with 1 live schedules and 0 open runs" in refused.err) == (2, True)
    assert server.told("namespace", "delete", "staging", "--force", "--yes") == "staging: deleted\n"
    assert server.ask("schedule", "list", "--namespace", "staging").code == 5
    assert server.ask("namespace", "delete", "default", "--force", "--yes").code == 1


def test_a_namespace_is_limited_and_shows_what_it_has(server: Server) -> None:
    server.told("namespace", "create", "staging")
    create = ("schedule", "create", "--every", "PT1H", "--workflow-type", "w", "--namespace", "staging")
    server.told(*create, "a")
    told = server.told("namespace", "quota", "staging", "--schedules", "1", "--keep-runs", "30")
    assert ["schedules", "1", "1", "namespace"] in [line.split() for line in told.splitlines()]
    assert ["keep_runs_days", "-", "30", "-"] in [line.split() for line in told.splitlines()]
    full = server.ask(*create, "b")
    assert (full.code, full.out) == (2, "")
    assert "has 1 of 1" in full.err
    document = json.loads(server.told("namespace", "quota", "staging", "--schedules", "none", "-o", "json"))
    assert document["quotas"]["schedules"] == {"limit": None, "used": 1, "own": True}
    server.told(*create, "b")
    assert server.ask("namespace", "quota", "staging", "--open-runs", "many").code == 2
    assert "shortest_gap_seconds" in server.told("namespace", "quota"), "one's own, where none is named"
