"""Names in any spelling, numbers by kind and bound, and objects without unknown keys."""

import time
from enum import StrEnum

import pytest

from horarium.core.policy.approval import (
    APPROVAL_ALIASES,
    FAILURE_ALIASES,
    RETRY_ALIASES,
    ApprovalMode,
    FailureMode,
    RetryCause,
    parse_approval_mode,
    parse_failure_mode,
    parse_retry_cause,
)
from horarium.core.policy.queue import (
    CATCHUP_ALIASES,
    MAX_TEXT_LENGTH,
    MAX_WHOLE,
    OVERLAP_ALIASES,
    QUEUE_MODE_ALIASES,
    CatchupPolicy,
    OverlapPolicy,
    PolicyError,
    flag,
    flag_or_none,
    parse_catchup_policy,
    parse_name,
    parse_overlap_policy,
    parse_queue_mode,
    read_object,
    shown,
    text,
    texts,
    whole_number,
    whole_or_none,
)


class Colour(StrEnum):
    DARK_RED = "dark_red"
    BLUE = "blue"


ALIASES = {"old_rose": Colour.DARK_RED}
NAMES = {
    "overlap": (parse_overlap_policy, OVERLAP_ALIASES, OverlapPolicy),
    "catchup": (parse_catchup_policy, CATCHUP_ALIASES, CatchupPolicy),
    "retry": (parse_retry_cause, RETRY_ALIASES, RetryCause),
    "approval": (parse_approval_mode, APPROVAL_ALIASES, ApprovalMode),
    "failure": (parse_failure_mode, FAILURE_ALIASES, FailureMode),
    "queue": (parse_queue_mode, QUEUE_MODE_ALIASES, OverlapPolicy),
}


def colour(value):
    return parse_name(Colour, ALIASES, value, "colour")


@pytest.mark.parametrize(
    "spelling", ["dark_red", "DARK_RED", "DarkRed", "darkRed", "dark-red", "darkred", "Dark_Red", "DARKRED"]
)
def test_a_name_is_read_in_any_case(spelling):
    assert colour(spelling) is Colour.DARK_RED


@pytest.mark.parametrize("spelling", ["old_rose", "OldRose", "oldRose", "OLD_ROSE"])
def test_an_alias_is_read_in_any_case(spelling):
    assert colour(spelling) is Colour.DARK_RED


@pytest.mark.parametrize(
    "value",
    ["", "red", "dark__red", "dark red", " blue", "blue\n", "b_lue", "BLUE\u212a", "\ud800", None, True, 1, [], {}],
    ids=ascii,
)
def test_any_other_name_is_refused_with_the_allowed_ones(value):
    with pytest.raises(PolicyError) as caught:
        colour(value)
    assert caught.value.field == "colour"
    assert "dark_red, blue, old_rose" in caught.value.text
    assert str(caught.value) == f"colour: {caught.value.text}"
    str(caught.value).encode()


@pytest.mark.parametrize(("parse", "aliases", "enum_cls"), NAMES.values(), ids=NAMES)
def test_every_name_and_alias_of_every_policy_is_read_in_every_spelling(parse, aliases, enum_cls):
    for spelling, name in ({each.value: each for each in enum_cls} | dict(aliases)).items():
        pascal = "".join(part.title() for part in spelling.split("_"))
        for written in (spelling, spelling.upper(), pascal, pascal[0].lower() + pascal[1:]):
            assert parse(written) is name
        with pytest.raises(PolicyError) as caught:
            parse("x" + spelling, "some_field")
        assert caught.value.field == "some_field"


@pytest.mark.parametrize(("parse", "aliases", "enum_cls"), NAMES.values(), ids=NAMES)
def test_no_alias_hides_a_name(parse, aliases, enum_cls):
    spellings = [each.value.replace("_", "") for each in enum_cls]
    if parse is not parse_queue_mode:
        spellings += [alias.replace("_", "") for alias in aliases]
    assert len(spellings) == len(set(spellings))


@pytest.mark.parametrize("key", ["max_things", "maxThings", "MaxThings", "MAX_THINGS", "maxStuff", "max_stuff"])
def test_keys_are_read_in_both_cases_and_under_their_aliases(key):
    assert read_object({key: 3}, "box", ["max_things"], {"max_stuff": "max_things"}) == {"max_things": 3}


def test_a_null_counts_as_not_given():
    assert read_object({"size": None, "colour": 0}, "box", ["size", "colour"]) == {"colour": 0}


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("weight", "weight"),
        ("", "box"),
        (1, "box"),
        (None, "box"),
        ("w" * 10_000, "box"),
        ("\ud800", "box"),
        ("si ze", "si ze"),
    ],
    ids=ascii,
)
def test_an_unknown_key_is_refused_by_its_name(key, field):
    with pytest.raises(PolicyError, match="unknown key") as caught:
        read_object({key: 1}, "box", ["size"])
    assert caught.value.field == field
    assert len(str(caught.value)) < 300
    str(caught.value).encode()


def test_a_key_given_under_two_spellings_is_refused():
    with pytest.raises(PolicyError, match="twice") as caught:
        read_object({"max_size": 1, "maxSize": 1}, "box", ["max_size"])
    assert caught.value.field == "max_size"


@pytest.mark.parametrize("value", [None, [], "x", 1, True], ids=repr)
def test_only_an_object_is_an_object(value):
    with pytest.raises(PolicyError, match="must be an object") as caught:
        read_object(value, "box", ["size"])
    assert caught.value.field == "box"


@pytest.mark.parametrize("value", [True, 1.0, "1", None, [], float("nan")], ids=repr)
def test_a_whole_number_is_an_int_and_no_bool(value):
    with pytest.raises(PolicyError, match="must be an integer"):
        whole_number("n", value)


def test_a_whole_number_keeps_its_bounds():
    assert [whole_number("n", value) for value in (0, MAX_WHOLE)] == [0, MAX_WHOLE]
    assert whole_number("n", 5, least=5, most=5) == 5
    for value in (-1, MAX_WHOLE + 1, 10**100_000):
        with pytest.raises(PolicyError, match="between 0 and"):
            whole_number("n", value)
    assert whole_or_none("n", None) is None
    assert whole_or_none("n", 0) == 0
    with pytest.raises(PolicyError):
        whole_or_none("n", False)


def test_a_flag_is_a_bool_only():
    assert flag("f", True) is True
    assert flag("f", False) is False
    assert flag_or_none("f", None) is None
    assert flag_or_none("f", False) is False
    for value in (None, 0, 1, "true"):
        with pytest.raises(PolicyError, match="true or false"):
            flag("f", value)


@pytest.mark.parametrize(
    "value", ["", " a", "a ", "a\nb", "a\x00", "\ud800", "x" * (MAX_TEXT_LENGTH + 1), 1, None], ids=ascii
)
def test_a_text_is_short_and_printable(value):
    with pytest.raises(PolicyError) as caught:
        text("t", value)
    assert caught.value.field == "t"
    str(caught.value).encode()


def test_texts_keep_their_order_and_lose_their_doubles():
    assert texts("t", ["b", "a", "b"]) == ("b", "a")
    assert text("t", "x" * MAX_TEXT_LENGTH) == "x" * MAX_TEXT_LENGTH
    assert texts("t", []) == ()


@pytest.mark.parametrize("value", ["ab", {"a": 1}, None, 1, ["a", 1], ["a"] * 101], ids=lambda value: repr(value)[:20])
def test_texts_are_a_short_array_of_texts(value):
    with pytest.raises(PolicyError):
        texts("t", value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ("a", "'a'"),
        ("\ud800", r"'\ud800'"),
        ("x" * 10_000, repr("x" * 37 + "...")),
        (10**100_000, "a very large number"),
        (12, "12"),
        (1.5, "1.5"),
        ({}, "an object"),
        ([], "an array"),
        (object(), "a object"),
    ],
    ids=lambda value: repr(value)[:20] if not isinstance(value, int) else "int",
)
def test_any_value_is_shown_short(value, words):
    assert shown(value) == words


@pytest.mark.parametrize("value", ["x" * 10_000, "A" * 1_000_000, "_" * 10_000], ids=len)
def test_hostile_names_and_keys_are_refused_quickly(value):
    best = 1.0
    for _ in range(3):
        began = time.process_time()
        with pytest.raises(PolicyError):
            colour(value)
        with pytest.raises(PolicyError):
            read_object({value: 1}, "box", ["size"])
        best = min(best, time.process_time() - began)
    assert best < 0.010
