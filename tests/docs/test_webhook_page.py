"""The request that the page about webhooks shows has the parts of a real one."""

from __future__ import annotations

import json

import pytest
from docs.pages import ROOT, blocks_of
from launchers.far_ends import request_for

from horarium.launchers.requests import event_body

PAGE = ROOT / "docs/how-to/receive-a-webhook.md"


@pytest.mark.parametrize("part", [None, "data"])
def test_the_body_on_the_page_has_the_keys_of_a_real_one(part: str | None) -> None:
    [shown] = [json.loads(block.text) for block in blocks_of(PAGE, PAGE.read_text("utf-8")) if block.language == "json"]
    sent = json.loads(event_body(request_for("http"), "urn:horarium", b"{}"))
    assert list(shown[part] if part else shown) == list(sent[part] if part else sent)
