"""The reference pages are complete: every reason, operator, field, macro and DST choice is on its page."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from docs.pages import ROOT, first_cells, section
from docs.terminal import environment

from horarium.condition import Operator
from horarium.core.document.states import REASON_ALIASES, EventType, Reason, RunEventType
from horarium.core.recurrence.cron import compile_cron
from horarium.core.recurrence.lint import FindingCode
from horarium.core.recurrence.parts import DstFold, DstGap
from horarium.platform.settings import Settings
from horarium.platform.telemetry.metrics import Metrics

REFERENCE = ROOT / "docs" / "reference"
CRON = REFERENCE / "cron-dialect.md"
MACROS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def test_every_reason_is_documented() -> None:
    assert first_cells(section(REFERENCE / "reasons.md", "List of reasons")) == [reason.value for reason in Reason]


@pytest.mark.parametrize(("reason", "alias"), REASON_ALIASES.items(), ids=str)
def test_every_alias_stands_beside_its_reason(reason: Reason, alias: str) -> None:
    rows = section(REFERENCE / "reasons.md", "Aliases").splitlines()
    assert any(f"`{reason}`" in row and f"`{alias}`" in row for row in rows)


def test_every_operator_is_documented() -> None:
    assert first_cells(section(REFERENCE / "conditions.md", "Operators")) == [operator.value for operator in Operator]


def test_every_finding_of_the_linter_is_documented() -> None:
    assert set(first_cells(section(CRON, "Lint findings"))) == {code.value for code in FindingCode}


def test_every_field_is_documented_with_its_range() -> None:
    fields = compile_cron("0 * * * * *").fields
    rows = section(CRON, "Fields")
    assert first_cells(rows) == [field.kind.name for field in fields]
    for field in fields:
        assert f"{field.kind.low}–{field.kind.high}" in rows


@pytest.mark.parametrize("macro", MACROS)
def test_every_macro_means_what_its_row_says(macro: str) -> None:
    [row] = [line for line in section(CRON, "Macros").splitlines() if f"`{macro}`" in line]
    meaning = row.strip("|").split("|")[1].strip().strip("`")
    assert [f.mask for f in compile_cron(macro).fields] == [f.mask for f in compile_cron(meaning).fields]


@pytest.mark.parametrize("choice", [*DstGap, *DstFold], ids=str)
def test_every_dst_choice_is_documented(choice: str) -> None:
    assert f"`{choice}`" in section(CRON, "Daylight saving time")


def test_the_generated_pages_are_what_the_code_says() -> None:
    """`python docs/generate.py` writes them anew."""
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "current\n", done.stdout + done.stderr


def test_every_setting_metric_and_event_is_on_its_page() -> None:
    metrics = Metrics()
    for page, names in {
        "settings.md": Settings.model_fields,
        "events.md": [*EventType, *RunEventType],
        "metrics.md": [
            metric.name
            for registry in (metrics.registry, metrics.engine, metrics.installation)
            for metric in registry.collect()
        ],
    }.items():
        text = (REFERENCE / page).read_text("utf-8")
        assert [name for name in names if not re.search(rf"`{name}(?:_total)?`", text)] == []
