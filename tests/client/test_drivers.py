"""The two drivers are one client: the same names, the same signatures, the same documentation."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import horarium
from horarium.client import client
from horarium.client import client as client_client
from horarium.platform.client.call import Method, Page, Pages

PAIRS = [(client.Client, client_client.AsyncClient), (client.ScheduleHandle, client_client.AsyncScheduleHandle)]
PAGED = {"iter_schedules": "list_schedules", "iter_schedule_history": "get_schedule_history",
         "iter_schedule_runs": "list_schedule_runs", "iter_schedule_revisions": "list_schedule_revisions",
         "iter_runs": "list_runs", "iter_run_events": "get_run_events",
         "iter_run_logs": "get_run_logs", "iter_feed": "get_feed", "iter_schedule_health": "list_schedule_health",
         "iter_dead_letters": "list_dead_letters", "iter_subscriptions": "list_subscriptions",
         "iter_audit": "list_audit",
         "iter_calendars": "list_calendars", "iter_secrets": "list_secrets", "iter_workflows": "list_workflows",
         "iter_workflow_versions": "workflow_versions", "iter_approvals": "list_approvals",
         "iter_standing_approvals": "list_standing_approvals", "iter_agents": "list_agents",
         "iter_teams": "list_teams", "iter_assignments": "list_assignments",
         "iter_agenda_lanes": "list_agenda_lanes"}  # fmt: skip


def methods(kind: type) -> dict[str, Any]:
    return {name: member for name, member in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


def declared(kind: type, *of: type) -> set[str]:
    return {name for each in kind.__mro__ for name, member in vars(each).items() if isinstance(member, of)}


@pytest.mark.parametrize(("sync", "twin"), PAIRS, ids=["client", "handle"])
def test_both_have_the_same_methods_with_the_same_signatures(sync: type, twin: type) -> None:
    ours, theirs = methods(sync), methods(twin)
    if "close" in ours:
        ours["aclose"] = ours.pop("close")  # the name that async things have for it
    assert ours.keys() == theirs.keys()
    for name, method in ours.items():
        assert inspect.signature(method).parameters == inspect.signature(theirs[name]).parameters, name
        assert method.__doc__ == theirs[name].__doc__, name


@pytest.mark.parametrize("kind", [client.Client, client_client.AsyncClient], ids=["sync", "async"])
def test_a_method_shows_the_signature_and_the_words_of_its_call(kind: type) -> None:
    made = kind()
    for name in declared(kind, Method, Pages):
        bound, make = getattr(made, name), getattr(kind, name)
        assert inspect.signature(bound).parameters == inspect.signature(make).parameters, name
        assert bound.__doc__ == make.__doc__, name
        assert inspect.iscoroutinefunction(bound) is (
            kind is client_client.AsyncClient and name in declared(kind, Method)
        )


@pytest.mark.parametrize("kind", [client.Client, client_client.AsyncClient], ids=["sync", "async"])
def test_every_call_that_goes_on_has_an_iterator(kind: type) -> None:
    going_on = {
        name
        for name in declared(kind, Method)
        if not name.startswith("bulk_")  # which change things, and are not to be gone through by a loop
        and name != "admin_schedule_health"  # a bare list, as monitors know it, has no place for where it goes on
        and {"next_page_token", "after_sequence", "after"} & set(inspect.signature(getattr(kind, name)).parameters)
    }
    assert going_on == set(PAGED.values())
    assert {name: getattr(kind, name).__name__ for name in declared(kind, Pages)} == PAGED


def test_a_handle_has_the_calls_of_a_schedule_without_its_id() -> None:
    wanted = {"describe", "update", "pause", "resume", "trigger", "backfill", "delete", "history", "runs", "preview"}
    assert wanted | {"explain"} <= methods(client.ScheduleHandle).keys()
    handle = client.Client().schedule_handle("s")
    assert "schedule_id" not in inspect.signature(handle.trigger).parameters
    assert inspect.signature(client.Client.trigger_schedule).parameters["schedule_id"]


@pytest.mark.parametrize("name", ["Client", "AsyncClient", "Worker", "AsyncWorker"])
def test_the_package_offers_it(name: str) -> None:
    assert getattr(horarium, name).__name__ == name
    assert name in horarium.__all__


def test_a_name_that_the_package_does_not_have() -> None:
    with pytest.raises(AttributeError, match="Klient"):
        _ = horarium.Klient


def test_the_token_is_not_printed() -> None:
    with client.Client(token="hor_secret") as made:
        assert "hor_secret" not in f"{made!r} {made.connection!r}"


def test_a_cursor_that_does_not_move_ends_the_list() -> None:
    first = client.Client.get_schedule_history("s")
    second = first.after(Page((), 3))
    assert second is not None
    assert second.query["after_sequence"] == 3
    assert second.after(Page((), 3)) is None
    assert second.after(Page((), None)) is None
    assert client.Client.get_run("r").after(Page((), 3)) is None
