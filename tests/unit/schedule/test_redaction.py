"""What comes back from a target does not show what was sent to it."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.schedule.redaction import Redactor

TOKEN = "s3cr3t-token-42"

LONG = "x " * 200

TEXTS = {
    "alone": ([TOKEN], TOKEN, "***"),
    "inside": ([TOKEN], f"HTTP 401: {TOKEN} is wrong", "HTTP 401: *** is wrong"),
    "twice": ([TOKEN], f"{TOKEN}{TOKEN}", "******"),
    "without its scheme": ([f"Bearer {TOKEN}"], f"bad token {TOKEN}!", "bad token ***!"),
    "a cookie": ([f"id={TOKEN}; theme=dark"], f"cookies: {{'id': '{TOKEN}'}}", "cookies: {'id': '***'}"),
    "spelled in JSON": (['quo"ted\\value'], r'{"a": "quo\"ted\\value"}', '{"a": "***"}'),
    "half of it, cut": ([TOKEN], f"{LONG}{TOKEN[:10]}…", f"{LONG}***…"),
    "half of it at the end": ([TOKEN], f"{LONG}{TOKEN[:10]}", f"{LONG}***"),
    "half of it in a text that nobody cut": ([TOKEN], f"you sent {TOKEN[:10]}", f"you sent {TOKEN[:10]}"),
    "a thousand words": ([f"{TOKEN} " * 1_000], f"{TOKEN} " * 1_000, "***"),
    "a part of another": ([TOKEN, f"{TOKEN}-long"], f"{TOKEN}-long", "***"),
    "too short": (["red"], "red is red", "red is red"),
    "nothing sent": ([], TOKEN, TOKEN),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_is_masked(case: str) -> None:
    values, text, masked = TEXTS[case]
    assert Redactor(values).text(text) == masked


def test_json_is_masked_in_keys_and_values() -> None:
    given: Any = {"a": [TOKEN, 1, None, True], TOKEN: {"b": f"x {TOKEN}"}}
    assert Redactor([TOKEN]).json(given) == {"a": ["***", 1, None, True], "***": {"b": "x ***"}}
    assert Redactor(()).json(given) is given
