"""What is asked of a schedule of a workspace: what is read of it, and the document that it becomes."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.features.agents.workspace_words import (
    REQUIRED,
    RequestError,
    ScheduleRequest,
    change_document,
    cron_of,
    cut_prompt,
    new_document,
    prompt_of,
    read_change,
    read_new,
    refusal,
    zone_of,
)

GOOD = {"cron_expr": "0 9 * * *", "prompt": "p"}


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (GOOD, ScheduleRequest(cron_expr="0 9 * * *", prompt="p")),
        ({**GOOD, "id": 7, "next": []}, ScheduleRequest(cron_expr="0 9 * * *", prompt="p")),
        ({**GOOD, "prompt": "a\r\nb\r"}, ScheduleRequest(cron_expr="0 9 * * *", prompt="a\nb")),
        ({**GOOD, "timezone": ""}, ScheduleRequest(cron_expr="0 9 * * *", prompt="p", timezone="UTC")),
        ({**GOOD, "name": "", "enabled": False}, ScheduleRequest("", "0 9 * * *", None, "p", False)),
        ({}, RequestError("body", REQUIRED)),
        ([], RequestError("body", REQUIRED)),
        (None, RequestError("body", REQUIRED)),
        ({**GOOD, "prompt": ""}, RequestError("body", REQUIRED)),
        ({**GOOD, "prompt": "\r\r"}, RequestError("prompt", REQUIRED)),
        ({**GOOD, "cron_expr": 5}, RequestError("body", REQUIRED)),
        ({**GOOD, "name": 5}, RequestError("name", "invalid request body: name must be a string, not 5")),
        ({**GOOD, "enabled": 1}, RequestError("enabled", "invalid request body: enabled must be true or false, not 1")),
    ],
    ids=str,
)
def test_what_a_new_one_must_say(body: object, read: ScheduleRequest | RequestError) -> None:
    assert read_new(body) == read


@pytest.mark.parametrize(
    ("body", "document"),
    [
        ({}, {}),
        (dict.fromkeys(("name", "cron_expr", "timezone", "prompt", "enabled")), {}),
        ({"name": ""}, {"name": ""}),
        ({"prompt": "a\r"}, {"action": {"prompt": "a"}}),
        ({"enabled": False}, {"enabled": False}),
        ({"timezone": ""}, {"spec": {"timezone": "UTC"}}),
        ({"cron_expr": "@daily"}, {"spec": {"cron_expressions": ["@daily"], "intervals": None, "at": None}}),
    ],
    ids=str,
)
def test_a_change_says_nothing_of_what_was_not_given(body: object, document: dict[str, Any]) -> None:
    wish = read_change(body)
    assert isinstance(wish, ScheduleRequest)
    assert change_document(wish) == document


def test_a_change_to_nothing_is_refused() -> None:
    assert isinstance(read_change({"prompt": "\r"}), RequestError)
    assert isinstance(read_change("x"), RequestError)


def test_a_new_one_is_a_prompt_to_the_agent_that_waits_for_no_yes() -> None:
    made = new_document(ScheduleRequest(cron_expr="0 9 * * *", prompt="p"), "writer")
    assert made == {
        "name": "",
        "spec": {"cron_expressions": ["0 9 * * *"], "timezone": "UTC"},
        "action": {"kind": "prompt", "prompt": "p"},
        "assignee_type": "agent",
        "assignee_id": "writer",
        "approval_policy": {"requires_approval": False},
        "source": "runtime",
    }
    assert (cron_of(made), zone_of(made), prompt_of(made)) == ("0 9 * * *", "UTC", "p")


@pytest.mark.parametrize(
    "spec",
    [
        {"cron_expressions": ["0 9 * * *", "0 10 * * *"]},
        {"cron_expressions": ["0 9 * * *"], "intervals": [{"every": "PT1H"}]},
        {"cron_expressions": ["0 9 * * *"], "at": ["2026-03-01T00:00:00Z"]},
        {"intervals": [{"every": "PT1H"}]},
        {},
        None,
    ],
    ids=str,
)
def test_what_no_single_expression_says_has_none(spec: object) -> None:
    assert (cron_of({"spec": spec}), zone_of({"spec": spec}), prompt_of({"action": []})) == ("", "UTC", "")


@pytest.mark.parametrize(
    ("path", "wish", "told"),
    [
        ("spec.timezone", ScheduleRequest(timezone="Mars"), RequestError("timezone", "invalid timezone: Mars")),
        ("timezone", ScheduleRequest(timezone="M" * 99), RequestError("timezone", f"invalid timezone: {'M' * 64}")),
        ("spec.timezone", ScheduleRequest(), RequestError("cron_expr", "invalid request body: cron_expr: wrong")),
        (
            "spec.cron_expressions.0",
            ScheduleRequest(timezone="UTC"),
            RequestError("cron_expr", "invalid request body: cron_expr: wrong"),
        ),
        ("action.prompt", ScheduleRequest(), RequestError("prompt", "invalid request body: prompt: wrong")),
        ("assignee_id", ScheduleRequest(), RequestError("assignee_id", "invalid request body: assignee_id: wrong")),
    ],
    ids=str,
)
def test_a_refusal_is_told_in_the_words_of_the_request(path: str, wish: ScheduleRequest, told: RequestError) -> None:
    assert refusal({path: ["wrong"], "other": ["as well"]}, wish) == told


@pytest.mark.parametrize(
    ("prompt", "cut"),
    [
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 200 + "..."),
        ("x" + "é" * 100, "x" + "é" * 99 + "..."),
        ("\U0001f552" * 51, "\U0001f552" * 50 + "..."),
        ("", ""),
    ],
    ids=["fits", "one too many", "two bytes", "four bytes", "empty"],
)
def test_a_prompt_is_cut_between_two_characters(prompt: str, cut: str) -> None:
    assert cut_prompt(prompt) == cut
