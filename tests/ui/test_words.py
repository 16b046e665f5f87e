"""What the app repeats of the service's own lists says the same; its types hold the rest to the OpenAPI document."""

from __future__ import annotations

import re

from app_build import UI

from horarium.core.document.reader import SHIPPED


def test_the_fields_of_each_kind_of_action_are_those_that_the_service_declares() -> None:
    source = (UI / "src" / "pages" / "edit" / "kinds.ts").read_text("utf-8")
    (block,) = re.findall(r"OF_KIND[^=]*= \{\n(.*?)\n\};", source, re.DOTALL)
    listed = {
        kind: set(re.findall(r'"(\w+)"', names))
        for kind, names in re.findall(r"^  (\w+): \[(.*)\],$", block, re.MULTILINE)
    }
    assert listed == {kind.name: set(kind.fields) for kind in SHIPPED.values()}


def test_every_kind_that_is_shipped_can_be_chosen() -> None:
    section = (UI / "src" / "pages" / "edit" / "WhatSection.tsx").read_text("utf-8")
    assert re.search(r"^const KINDS = Object\.entries\(ACTION_KINDS\)", section, re.MULTILINE)
    words = (UI / "src" / "words" / "kinds.ts").read_text("utf-8")
    (block,) = re.findall(r"ACTION_KINDS[^=]*= \{\n(.*?)\n\} as const;", words, re.DOTALL)
    assert set(re.findall(r"^  (\w+): ", block, re.MULTILINE)) == set(SHIPPED)
