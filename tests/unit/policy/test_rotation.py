"""Which inputs a run gets."""

import pytest

from horarium.core.policy.queue import MAX_ROTATION, PolicyError, inputs_for, parse_rotation, pick_entry


@pytest.mark.parametrize(("length", "index", "position"), [(3, 0, 0), (3, 2, 2), (3, 3, 0), (3, 10**12, 1), (1, 7, 0)])
def test_the_index_goes_round(length, index, position):
    assert pick_entry(length, index) == position


def test_without_a_rotation_no_index_is_used():
    assert pick_entry(0, 5) is None
    assert inputs_for({"a": 1}, [], 5) == {"a": 1}


def test_an_entry_replaces_the_inputs_whole():
    rotation = [{"b": 1}, {"b": 2}]
    assert [inputs_for({"a": 0}, rotation, index) for index in range(3)] == [{"b": 1}, {"b": 2}, {"b": 1}]


@pytest.mark.parametrize(("length", "index"), [(-1, 0), (3, -1), (True, 0)])
def test_counts_are_not_negative(length, index):
    with pytest.raises(ValueError, match="rotation"):
        pick_entry(length, index)


def test_a_rotation_is_a_list_of_objects_and_null_is_none():
    assert parse_rotation(None) == parse_rotation([]) == ()
    assert parse_rotation([{"a": 1}, {}]) == ({"a": 1}, {})
    assert len(parse_rotation([{}] * MAX_ROTATION)) == MAX_ROTATION


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({}, "inputs_rotation"),
        ("ab", "inputs_rotation"),
        ([{}] * (MAX_ROTATION + 1), "inputs_rotation"),
        ([{}, None], "inputs_rotation.1"),
        ([1], "inputs_rotation.0"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_anything_else_is_refused_by_its_place(value, field):
    with pytest.raises(PolicyError) as caught:
        parse_rotation(value)
    assert caught.value.field == field
