"""How long a connection may wait, and for what."""

from __future__ import annotations

from typing import Any

import h11
import pytest

from horarium.serve.http_protocol import Phase, is_crumbs, phase_of, reads


@pytest.mark.parametrize(
    ("their_state", "idle", "phase"),
    [
        pytest.param(h11.IDLE, False, Phase.HEAD, id="a new connection, or headers that have begun"),
        pytest.param(h11.IDLE, True, None, id="between two requests"),
        pytest.param(h11.SEND_BODY, False, Phase.BODY, id="a body that has not ended"),
        pytest.param(h11.SEND_BODY, True, Phase.BODY, id="a body that goes on after its answer"),
        pytest.param(h11.DONE, False, None, id="all is said"),
        pytest.param(h11.MUST_CLOSE, False, None, id="all is said for good"),
    ],
)
def test_what_the_client_owes(their_state: Any, idle: bool, phase: Phase | None) -> None:
    assert phase_of(their_state, idle=idle) is phase


@pytest.mark.parametrize(
    ("before", "now", "is_reading"),
    [
        pytest.param(500_000, 500_000, False, id="nothing was read"),
        pytest.param(500_000, 499_990, False, id="a byte now and then"),
        pytest.param(500_000, 400_000, True, id="a slow line"),
        pytest.param(100, 0, True, id="the little that was left"),
        pytest.param(0, 0, True, id="there is nothing to read"),
    ],
)
def test_who_reads_a_kilobyte_a_second_reads(before: int, now: int, is_reading: bool) -> None:
    assert reads(before, now, 30) is is_reading


@pytest.mark.parametrize(
    ("pieces", "size", "crumbs"),
    [(1_000, 1_000, False), (1_100, 1_100, True), (33_000, 2_097_152, False), (40_000, 2_097_152, True)],
)
def test_a_body_may_have_small_pieces_but_not_only(pieces: int, size: int, crumbs: bool) -> None:
    assert is_crumbs(pieces, size) is crumbs
