"""The page of limits names the settings and the numbers that there are."""

from __future__ import annotations

import re

from docs.pages import ROOT

from horarium.features.cluster.probes import PROBES
from horarium.platform.database import partition_upkeep, partitions
from horarium.platform.database.statements import MAX_PAGE_BYTES
from horarium.platform.http import limits, middleware, requests
from horarium.platform.settings import Settings
from horarium.serve import http_protocol, sockets

TEXT = (ROOT / "docs" / "reference" / "limits.md").read_text("utf-8")
# Names in the page that are no settings: fields of answers.
FIELDS = {"next_page_token", "next_cursor", "inputs_omitted", "result_omitted"}


def test_every_setting_on_the_page_is_one() -> None:
    named = {word for word in re.findall(r"`([a-z_]+)`", TEXT) if "_" in word} - FIELDS
    assert named <= set(Settings.model_fields)
    assert {"max_connections", "requests_per_token", "allowed_hosts"} <= named


def test_the_numbers_on_the_page_are_those_of_the_code() -> None:
    numbers = (
        f"{middleware.MAX_TARGET_BYTES:,} bytes",
        f"{middleware.MAX_HEADERS} headers and {middleware.MAX_HEADER_BYTES:,} bytes in total; "
        f"{http_protocol.HEAD_BYTES:,}",
        f"{requests.MAX_DEPTH} levels",
        f"{sockets.RESERVE} more connections are reserved for probes, of which one address can use "
        f"{sockets.RESERVE_OF_ADDRESS}",
        f"wait up to {limits.WAIT_SECONDS:g} seconds",
        f"rows to keep in the partition of an expired week | {partition_upkeep.MOST_MOVED:,} |",
        f"waiting for a lock | {partition_upkeep.LOCK_WAIT.removesuffix('s')} seconds |",
        f"partitions created in advance | {partitions.AHEAD} weeks |",
    )
    assert [number for number in numbers if number not in TEXT] == []
    assert MAX_PAGE_BYTES == 2 * 1024 * 1024
    assert all(f"`{path}`" in TEXT for path in PROBES)
