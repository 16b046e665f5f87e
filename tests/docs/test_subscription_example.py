"""The subscription in the docs tells of every unsuccessful end."""

from __future__ import annotations

import re

from docs.pages import ROOT

from horarium.core.document.states import UNSUCCESSFUL
from horarium.features.webhooks.filters import read_filter


def test_the_subscription_to_failures_covers_every_unsuccessful_end() -> None:
    page = (ROOT / "docs/how-to/be-told-of-failures.md").read_text("utf-8")
    example = re.search(r"horarium subscription create failures(?:.*\\\n)*.*", page)
    assert example is not None
    states = re.findall(r"--state (\w+)", example[0])
    assert read_filter(["run_finished"], {"states": states}).states == UNSUCCESSFUL
