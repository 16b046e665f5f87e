"""Report tokens and the push tokens made from them: each is for one delivery, and neither replaces the other."""

from __future__ import annotations

import pytest

from horarium.core.lifecycle.outcome import PUSH_PREFIX, Fence, ReportTokens, is_report_token, push_token, push_url
from horarium.platform.ids import new_id

RUN = new_id()
TOKENS = ReportTokens(b"k" * 32, "https://horarium.test", (b"old" * 8,))


@pytest.mark.parametrize("fence", [Fence(0), Fence(3), Fence(0, 2), Fence(12, 1)])
@pytest.mark.parametrize("key", TOKENS.keys)
def test_a_token_of_either_kind_and_of_any_key_is_recognised(fence: Fence, key: bytes) -> None:
    report = ReportTokens(key).make(RUN, *fence)
    assert TOKENS.fence_of(report, RUN) == fence
    assert TOKENS.fence_of(report, new_id()) is None
    token = push_token(report)
    assert TOKENS.fence_of_push(token, RUN) == fence
    assert TOKENS.fence_of_push(token, new_id()) is None


def test_neither_token_is_good_for_what_the_other_is() -> None:
    report = TOKENS.make(RUN, 0)
    push = push_token(report)
    assert TOKENS.fence_of_push(report, RUN) is None
    assert TOKENS.fence_of(push, RUN) is None
    assert TOKENS.fence_of(push.replace(PUSH_PREFIX, "hrt_"), RUN) is None
    assert not is_report_token(push)


@pytest.mark.parametrize(
    "forged",
    ["", "hpt_", "hpt_0", "hpt_0.", "hpt_0.x", "hpt_00.x", "hpt_1g0.x", "hpt_x.y", "hpt_" + "9" * 500, "hpt_0.\ud800"],
)
def test_what_is_no_push_token_stands_for_nothing(forged: str) -> None:
    assert TOKENS.fence_of_push(forged, RUN) is None


def test_another_number_needs_another_signature() -> None:
    token = push_token(TOKENS.make(RUN, 0))
    assert TOKENS.fence_of_push(token.replace("hpt_0.", "hpt_1."), RUN) is None
    assert TOKENS.fence_of_push(token.replace("hpt_0.", "hpt_00."), RUN) is None


def test_a_push_goes_beside_the_report() -> None:
    reports = TOKENS.report_url("01")
    assert reports is not None
    assert push_url(reports) == "https://horarium.test/api/runs/01/pushes"
