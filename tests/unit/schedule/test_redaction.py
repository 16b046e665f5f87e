"""What comes back from a target does not show what was sent to it."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from html import escape
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from horarium.core.document.secret_values import MASK, Redactor, _beginning

TOKEN = "s3cr3t-token-42"

LONG = "x " * 200
ODD = 'Bearer a/b+c&"d"=='
BASIC = f"Basic {b64encode(b'svc:hunter2hunter2').decode()}"

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
    "in an address": ([ODD], f"?t={quote(ODD, safe='')}", "?t=***"),
    "its path": ([ODD], quote('a/b+c&"d"=='), "***"),
    "in a form": ([ODD], f"t={quote_plus(ODD)}&u=1", "t=***&u=1"),
    "in HTML": ([ODD], f"<p>{escape(ODD)}</p>", "<p>***</p>"),
    "in capitals": ([f"Bearer {TOKEN}"], f"no {TOKEN.upper()}", "no ***"),
    "in small letters": (["ABCD-EFGH-42"], "abcd-efgh-42", "***"),
    "in base64": ([f"Bearer {TOKEN}"], b64encode(TOKEN.encode()).decode(), "***"),
    "in base64 with its scheme": ([f"Bearer {TOKEN}"], b64encode(f"Bearer {TOKEN}".encode()).decode(), "***=="),
    "in hexadecimal digits": ([TOKEN], f"0x{TOKEN.encode().hex()}", "0x***"),
    "what Basic holds": ([BASIC], "login svc:hunter2hunter2", "login ***"),
    "the password of Basic": ([BASIC], "wrong: hunter2hunter2", "wrong: ***"),
    "Basic that is none": (["Basic %%%%%%%%%"], "%%%%%%%%%", "***"),
    "too short": (["red"], "red is red", "red is red"),
    "nothing sent": ([], TOKEN, TOKEN),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_is_masked(case: str) -> None:
    values, text, masked = TEXTS[case]
    assert Redactor(values).text(text) == masked


@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode], ids=["standard", "for addresses"])
@pytest.mark.parametrize("before", range(6))
@pytest.mark.parametrize("secret", ["~~~~~~~~", "12345678", "s3cr3t-t~ken?>", f"{TOKEN}-and-more", "ключ-доступа"])
def test_a_value_inside_a_text_in_base64_is_masked(secret: str, before: int, encode: Callable[[bytes], bytes]) -> None:
    """What is left beside the mask carries at most a few bits of the first and the last byte of the value."""
    text = encode(b"u" * before + secret.encode() + b":end of the text").decode()
    masked = Redactor([secret]).text(text)
    left, mask, right = masked.partition("***")
    assert mask
    assert len(left) * 6 < before * 8 + 6
    assert len(right) * 6 < len(b":end of the text") * 8 + 18  # with two characters of padding


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\n  ", "\\n", "\\r\\n"], ids=repr)
@pytest.mark.parametrize("columns", [8, 64, 76])
@pytest.mark.parametrize("before", range(3))
def test_a_value_in_base64_that_line_breaks_divide_is_masked(before: int, columns: int, line_break: str) -> None:
    text = b64encode(b"u" * before + TOKEN.encode() * 6 + b":end").decode()
    divided = line_break.join(text[at : at + columns] for at in range(0, len(text), columns))
    redactor = Redactor([TOKEN * 6])
    for masked in (redactor.text(f"first\n{divided}\nlast"), redactor.json({"a": ["first", divided, "last"]})):
        shown = str(masked)
        assert shown.count("***") == 1
        assert "first" in shown
        assert "last" in shown
        assert len(shown) < 60


@pytest.mark.parametrize("words", range(1, 12))
@pytest.mark.parametrize("before", range(3))
def test_a_value_of_any_number_of_words_is_masked_in_base64(words: int, before: int) -> None:
    secret = " ".join(f"word{number}" for number in range(words)) + "-end"
    text = b64encode(b"x" * before + secret.encode() + b" and more").decode()
    assert MASK in Redactor([secret]).text(text)
    assert Redactor([secret]).text(secret.encode().hex()) == MASK


def test_base64_is_masked_also_where_json_escapes_its_slashes() -> None:
    secret = "ok?ok?ok?ok?"
    text = b64encode(secret.encode()).decode().rstrip("=")
    assert "/" in text
    assert Redactor([secret]).text(text.replace("/", r"\/")) == MASK


def test_a_value_adds_a_bounded_number_of_spellings() -> None:
    assert len(Redactor(["Bearer " + "x~?" * 1_000])._values) < 60


def test_json_is_masked_in_keys_and_values() -> None:
    given: Any = {"a": [TOKEN, 1, None, True], TOKEN: {"b": f"x {TOKEN}"}}
    assert Redactor([TOKEN]).json(given) == {"a": ["***", 1, None, True], "***": {"b": "x ***"}}
    assert Redactor(()).json(given) is given


@pytest.mark.parametrize("given", ["", [], {}, None, [""], ["a\x00b", TOKEN], {"": ["", f"{LONG}{TOKEN[:9]}", TOKEN]}])
def test_json_is_masked_as_its_texts_are(given: Any) -> None:
    redactor = Redactor([TOKEN])

    def one_by_one(value: Any) -> Any:
        if isinstance(value, dict):
            return {redactor.text(key): one_by_one(item) for key, item in value.items()}
        if isinstance(value, list):
            return [one_by_one(item) for item in value]
        return redactor.text(value) if isinstance(value, str) else value

    assert redactor.json(given) == one_by_one(given)


def test_no_value_is_found_across_two_texts() -> None:
    assert Redactor([TOKEN]).json([TOKEN[:7], TOKEN[7:]]) == [TOKEN[:7], TOKEN[7:]]


def test_a_number_of_the_same_digits_is_masked() -> None:
    given = [1234567890, 123456789, 1.5, True, 10**5_000]
    assert Redactor(["Bearer 1234567890"]).json(given) == ["***", *given[1:]]
    assert Redactor(["0012345678"]).json(12345678) == "***"


def test_a_value_that_repeats_itself_costs_a_few_comparisons() -> None:
    class Counting(str):
        compared = 0

        def find(self, *wanted: Any) -> int:
            Counting.compared += 1
            return super().find(*wanted)

    text = Counting("a" * 5_000 + "b")
    assert _beginning(text, "a" * 6_000) == 0
    assert Counting.compared < 100
    assert Redactor(["a" * 6_000]).text(text) == "***"
