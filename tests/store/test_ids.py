"""Ids: 16 bytes, 26 characters, in the order of birth."""

from __future__ import annotations

import time
import uuid

import pytest

from horarium.errors import InvalidDefinition
from horarium.instant import SECOND, from_rfc3339
from horarium.platform.ids import id_at, id_text, new_id, parse_id


def test_an_id_is_a_uuid_of_version_7_born_now() -> None:
    before = time.time_ns() // 1_000_000
    born = uuid.UUID(bytes=new_id())
    assert (born.version, born.variant) == (7, uuid.RFC_4122)
    assert before <= born.int >> 80 <= time.time_ns() // 1_000_000


def test_later_ids_are_greater_as_bytes_and_as_text() -> None:
    ids = [new_id() for _ in range(5_000)]
    assert ids == sorted(set(ids))
    texts = [id_text(each) for each in ids]
    assert texts == sorted(set(texts))


def test_text_and_bytes_are_the_same_id() -> None:
    for each in (new_id(), bytes(16), b"\xff" * 16, bytes(range(16))):
        text = id_text(each)
        assert len(text) == 26
        assert parse_id(text, "run_id") == parse_id(text.lower(), "run_id") == each


def test_the_text_is_the_one_of_ulids() -> None:
    # The example of the ULID specification, with its timestamp 1469918176385 in the first ten characters.
    identity = parse_id("01ARYZ6S41TSV4RRFFQ69G5FAV", "run_id")
    assert int.from_bytes(identity[:6], "big") == 1_469_918_176_385
    assert id_text(bytes(16)) == "0" * 26
    assert id_text(b"\xff" * 16) == "7" + "Z" * 25


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0" * 25,
        "0" * 27,
        "8" + "0" * 25,
        "0" * 25 + "U",
        "0" * 25 + "i",
        "0" * 25 + "l",
        "0" * 25 + "O",
        "0" * 25 + "-",
        "0" * 25 + "\n",
        "0" * 25 + "٣",
        "0" * 25 + "\ud800",
        "ß" * 26,
        "0" * 10_000,
        None,
        7,
        b"0" * 26,
    ],
)
def test_what_is_no_id_is_refused_by_the_name_of_its_field(text: object) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        parse_id(text, "run_id")
    assert list(refused.value.errors) == ["run_id"]
    assert isinstance(refused.value, ValueError)
    assert len(str(refused.value).encode()) < 1_000


def test_the_lowest_id_of_an_instant_separates_before_from_after() -> None:
    instant = from_rfc3339("2026-03-08T07:00:00.5Z")
    lowest = uuid.UUID(bytes=id_at(instant))
    assert (lowest.version, lowest.variant) == (7, uuid.RFC_4122)
    assert id_at(instant - SECOND) < id_at(instant) < id_at(instant + 1_000)
    now = time.time_ns() // 1_000
    assert id_at(now - SECOND) < new_id() < id_at(now + 60 * SECOND)


@pytest.mark.parametrize(("instant", "first"), [(-1, 0), (2**70, 255)])
def test_an_instant_that_no_id_has_gives_the_nearest(instant: int, first: int) -> None:
    assert id_at(instant)[:6] == bytes([first] * 6)
