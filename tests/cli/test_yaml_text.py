"""YAML is JSON written by hand: the same values, nothing that JSON has no word for."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horarium.platform.cli.yaml_text import dump_yaml, parse_yaml

# To YAML, which reads ahead for the colon, what is longer than 1,024 characters is no name.
NAMES = st.text(max_size=80)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("at: 12:30", {"at": "12:30"}),
        ("cron: 0 2 * * *", {"cron": "0 2 * * *"}),
        ("start_at: 2026-03-08T07:00:00Z", {"start_at": "2026-03-08T07:00:00Z"}),
        ("day: 2026-03-08", {"day": "2026-03-08"}),
        ("country: no", {"country": "no"}),
        ("on: off", {"on": "off"}),
        ("mode: 0644", {"mode": "0644"}),
        ("big: 1_000", {"big": "1_000"}),
        ("hex: 0x10", {"hex": "0x10"}),
        ("inf: .inf", {"inf": ".inf"}),
        ("n: -5\nf: 1.5e3\nt: true\nz: null\ne:", {"n": -5, "f": 1500.0, "t": True, "z": None, "e": None}),
        ("# a note\na:\n  - b  # another\n  - 'c'\n", {"a": ["b", "c"]}),
        ("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
        ('{"json": ["is", {"yaml": 1}]}', {"json": ["is", {"yaml": 1}]}),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("a: &x {m: 1, n: 1}\nb: {<<: *x, n: 2}", {"a": {"m": 1, "n": 1}, "b": {"m": 1, "n": 2}}),
        (
            "a: &x {m: 1}\nb: &y {m: 2, n: 2}\nc: {<<: [*x, *y]}",
            {"a": {"m": 1}, "b": {"m": 2, "n": 2}, "c": {"m": 1, "n": 2}},
        ),
        ("'<<': 1", {"<<": 1}),
        ("", None),
    ],
)
def test_words_mean_what_they_mean_in_json(text: str, value: Any) -> None:
    assert parse_yaml(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: &x [*x]", r"an alias \(\*\) refers to itself \(line 1\)"),
        ("a: *x", "undefined alias"),
        ("<<: [1]", r"only objects can be merged \(<<\) \(line 1\)"),
        ("a: 1\na: 2", r"duplicate key 'a' \(line 2\)"),
        ("1: one", r"the key 1 is not text; quote it \(line 1\)"),
        ("[a]: b", r"is not text|unhashable|the key"),
        ("a: !!python/object:os.system x", "the tag .* is not supported"),
        ("a: !mine x", "the tag '!mine' is not supported"),
        ("a: !!timestamp 2026-01-01", "the tag .* is not supported"),
        ("a: [1", "line 1|line 2"),
        ("a: b: c", "mapping values are not allowed here"),
        ("a\x00b", "special characters|unacceptable"),
        ("a: 1\n---\nb: 2", "single document|another document"),
    ],
)
def test_what_json_has_no_word_for_is_refused_in_one_line(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        parse_yaml(text.encode())
    assert "\n" not in str(caught.value)


def test_a_few_lines_cannot_mean_a_billion() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    began = time.process_time()
    with pytest.raises(ValueError, match="expand to too much data"):
        parse_yaml("\n".join(lines).encode())
    with pytest.raises(ValueError, match="expand to too much data"):
        parse_yaml(f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 100)}]".encode())
    assert time.process_time() - began < 2


@given(JSON_VALUES)
def test_json_is_read_as_json_reads_it(value: Any) -> None:
    assert parse_yaml(json.dumps(value).encode()) == value


@given(st.dictionaries(NAMES, JSON_VALUES, max_size=4))
def test_what_we_write_as_yaml_we_read_again(value: Any) -> None:
    assert parse_yaml(dump_yaml(value).encode()) == value
