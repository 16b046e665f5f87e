"""What this program makes of a bundle before it asks the server."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from horarium.cli.bundle import read_definition

NOW = 1_770_000_000_000_000


def document(**action: Any) -> dict[str, Any]:
    return {"schedule_id": "s", "cron_expr": "0 2 * * *", "action": action}


def test_a_kind_that_only_the_server_knows_is_left_for_it_to_check() -> None:
    action = read_definition(document(kind="echo", text=5, queue="q"), None, now=NOW).action
    assert (action.kind, action.target, action.queue) == ("echo", {"text": 5}, "q")


@pytest.mark.parametrize("action", [{"kind": "e:cho"}, {"kind": "http", "text": "x"}], ids=str)
def test_what_no_server_can_take_is_refused_here(action: dict[str, Any]) -> None:
    with pytest.raises(typer.TyperException, match="action"):
        read_definition(document(**action), None, now=NOW)
