"""The worked examples of the dialect hold, for the engine and for the walker that judges it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from unit.recurrence import walker

from horarium import InvalidSpec, next_fires

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "cron.json").read_text(encoding="utf-8"))
FIRES: list[dict[str, Any]] = VECTORS["fires"]
REFUSED: list[dict[str, Any]] = VECTORS["refused"]
CLASSES = {"dst", "plain", "choice", "LW#", "prefix", "every", "either", "macro", "six_field_dst", "six"}


def label(row: dict[str, Any]) -> str:
    return f"{row['id']}-{row['expr']}"


def options(row: dict[str, Any]) -> dict[str, Any]:
    named: dict[str, Any] = {name: row[name] for name in ("dst_gap", "dst_fold") if name in row}
    if row.get("timezone") is not None:
        named["timezone"] = row["timezone"]
    return named


def moments(texts: list[str]) -> list[datetime]:
    return [datetime.fromisoformat(text) for text in texts]


def test_the_engine_gives_the_fires_of_the_vectors() -> None:
    for row in FIRES:
        answered = next_fires(row["expr"], after=row["after"], count=len(row["expected"]), **options(row))
        assert answered == moments(row["expected"]), label(row)
        assert all(str(moment.tzinfo) == "UTC" for moment in answered), label(row)


def test_the_engine_takes_a_datetime_for_after_as_well() -> None:
    row = FIRES[0]
    after = datetime.fromisoformat(row["after"])
    assert next_fires(row["expr"], after=after, **options(row)) == moments(row["expected"][:1])


def test_the_walker_gives_the_fires_of_the_vectors() -> None:
    for row in FIRES:
        head, _, rest = row["expr"].partition(" ")
        prefixed = head.startswith(("TZ=", "CRON_TZ="))
        expr = rest if prefixed else row["expr"]
        name = head.partition("=")[2] if prefixed else row["timezone"]
        expected = [int(moment.timestamp()) for moment in moments(row["expected"])]
        after = int(datetime.fromisoformat(row["after"]).timestamp())
        choice = {key: row[key] for key in ("dst_gap", "dst_fold") if key in row}
        if expr.startswith("@every "):
            found = walker.grid(expr.removeprefix("@every "), after, expected[-1])
        else:
            found = walker.fires(expr, walker.zone(name), after, expected[-1], **choice)
        assert found == expected, label(row)


@pytest.mark.parametrize("row", REFUSED, ids=label)
def test_the_engine_refuses_and_names_the_field(row: dict[str, Any]) -> None:
    zone = {} if "TZ=" in row["expr"] else {"timezone": "UTC"}
    with pytest.raises(InvalidSpec) as refusal:
        next_fires(row["expr"], after="2026-01-01T00:00:00Z", **(zone | options(row)))
    message = str(refusal.value)
    assert 0 < len(message) < 300
    if row["field"] is not None:
        assert row["field"] in message


def test_every_class_of_vector_is_present() -> None:
    assert {row["class"] for row in FIRES} == CLASSES
    assert len({row["id"] for row in FIRES + REFUSED}) == len(FIRES) + len(REFUSED)
