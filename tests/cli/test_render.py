"""One answer in four formats; YAML must mean what the JSON means."""

from __future__ import annotations

import json

import pytest

from horarium.core.recurrence.zone import load_zone
from horarium.instant import from_rfc3339
from horarium.platform.cli.streams import Format, Json, local_time, show

ROWS: list[Json] = [
    {"id": "a", "labels": {"team": "ops"}, "at": ["x", "y"], "none": None},
    {"id": "no", "labels": {}, "at": [], "count": 3},
]
YAML = """\
- id: a
  labels:
    team: ops
  at:
  - x
  - "y"
  none: null
- id: "no"
  labels: {}
  at: []
  count: 3
"""


def shown(capsys: pytest.CaptureFixture[str], rows: list[Json], output: Format) -> str:
    show(rows, output, columns=("id",), cells=[("a",), ("[b]",)])
    return capsys.readouterr().out


def test_json_is_one_array(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(shown(capsys, ROWS, Format.JSON)) == ROWS


def test_json_lines_are_one_document_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert [json.loads(line) for line in shown(capsys, ROWS, Format.JSONL).splitlines()] == ROWS


def test_yaml_is_in_blocks_and_quotes_what_others_would_misread(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, ROWS, Format.YAML) == YAML


@pytest.mark.parametrize(("output", "text"), [(Format.JSON, "[]\n"), (Format.JSONL, ""), (Format.YAML, "[]\n")])
def test_nothing_is_an_empty_array(capsys: pytest.CaptureFixture[str], output: Format, text: str) -> None:
    assert shown(capsys, [], output) == text


def test_a_table_shows_brackets_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert "[b]" in shown(capsys, ROWS, Format.TABLE)


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "Sun 2026-03-08 07:00:00 +00:00"),
        ("America/New_York", "Sun 2026-03-08 03:00:00 -04:00"),
        ("Asia/Kathmandu", "Sun 2026-03-08 12:45:00 +05:45"),
    ],
)
def test_local_time_is_what_the_wall_shows(zone: str, text: str) -> None:
    assert local_time(from_rfc3339("2026-03-08T07:00:00Z"), load_zone(zone)) == text
