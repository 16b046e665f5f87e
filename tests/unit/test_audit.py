"""A chain of the audit: what is written can be computed again, and whatever was done to it since is found."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256

import pytest

from horarium.core.audit_entries import (
    BEGINNING,
    AuditAction,
    BrokenLink,
    ChainEntry,
    ChainLink,
    check_chain,
    check_end,
    make_entry,
    parse_link,
)
from horarium.errors import InvalidDefinition

Tamper = Callable[[list[ChainEntry]], Sequence[ChainEntry]]


def chain(count: int, begin: ChainLink = BEGINNING) -> list[ChainEntry]:
    entries: list[ChainEntry] = []
    last = begin
    for number in range(count):
        deed = AuditAction("issue_token", "alice", "192.0.2.1", f"r{number}", "cli", {"name": f"n{number}"})
        entries.append(make_entry(last, "default", deed, 1_000_000 * number))
        last = ChainLink(entries[-1].sequence, entries[-1].hash)
    return entries


def end_of(entries: Sequence[ChainEntry]) -> ChainLink:
    return ChainLink(entries[-1].sequence, entries[-1].hash)


def verdict(
    entries: Sequence[ChainEntry], head: ChainLink | None, begin: ChainLink = BEGINNING, kept: ChainLink | None = None
) -> BrokenLink | None:
    last = begin
    for step in check_chain(entries, begin, kept):
        if isinstance(step, BrokenLink):
            return step
        last = step
    return check_end(last, begin, head, kept)


def test_the_hash_is_that_of_the_one_before_and_of_the_entry_as_json() -> None:
    """Recomputed from the words of the how-to page."""
    first, second = chain(2)
    said = {
        "namespace": "default", "sequence": 2, "recorded_at": "1970-01-01T00:00:01Z", "act": "issue_token",
        "principal": "alice", "address": "192.0.2.1", "request_id": "r1", "source": "cli", "detail": {"name": "n1"},
    }  # fmt: skip
    text = first.hash + json.dumps(said, sort_keys=True, separators=(",", ":"))
    assert second.hash == sha256(text.encode()).hexdigest()


def test_a_chain_as_it_was_written_is_whole() -> None:
    entries = chain(4)
    assert verdict(entries, end_of(entries)) is None
    assert verdict(entries, end_of(entries), kept=ChainLink(2, entries[1].hash)) is None
    assert verdict(entries[2:], end_of(entries), begin=ChainLink(2, entries[1].hash)) is None
    assert verdict([], None) is None


def _forged(entries: list[ChainEntry]) -> list[ChainEntry]:
    """Written anew from the second on, by somebody who knows how."""
    last, made = end_of(entries[:1]), entries[:1]
    for entry in entries[1:]:
        made.append(make_entry(last, "default", replace(entry.deed, principal="bob"), entry.recorded_at))
        last = end_of(made)
    return made


@pytest.mark.parametrize(
    ("tamper", "first_bad"),
    [
        pytest.param(lambda e: [e[0], replace(e[1], deed=replace(e[1].deed, principal="bob")), *e[2:]], 2, id="who"),
        pytest.param(lambda e: [e[0], replace(e[1], deed=replace(e[1].deed, act="x")), *e[2:]], 2, id="what"),
        pytest.param(lambda e: [e[0], replace(e[1], recorded_at=7), *e[2:]], 2, id="when"),
        pytest.param(lambda e: [e[0], replace(e[1], deed=replace(e[1].deed, detail={})), *e[2:]], 2, id="detail"),
        pytest.param(lambda e: [e[0], replace(e[1], namespace="other"), *e[2:]], 2, id="whose"),
        pytest.param(lambda e: [e[0], *e[2:]], 2, id="removed"),
        pytest.param(lambda e: e[1:], 1, id="the first removed"),
        pytest.param(lambda e: e[:-2], 3, id="the tail removed"),
        pytest.param(lambda e: [], 1, id="all removed"),
        pytest.param(lambda e: [e[0], replace(e[2], sequence=2), replace(e[1], sequence=3), e[3]], 2, id="two swapped"),
        pytest.param(lambda e: [e[0], e[1], e[1], *e[2:]], 2, id="one twice"),
        pytest.param(
            lambda e: [*e, make_entry(end_of(e), "default", AuditAction("x"), 9)], 5, id="one behind the head"
        ),
        pytest.param(_forged, 4, id="written anew"),
    ],
)
def test_whatever_was_done_to_it_is_found_at_its_first_entry(tamper: Tamper, first_bad: int) -> None:
    entries = chain(4)
    found = verdict(tamper(list(entries)), end_of(entries))
    assert found is not None
    assert found.sequence == first_bad


@pytest.mark.parametrize(("kept", "first_bad"), [(2, 2), (4, 3)], ids=["written anew", "cut off"])
def test_a_head_that_was_kept_elsewhere_finds_what_the_database_agrees_about(kept: int, first_bad: int) -> None:
    entries = chain(4)
    forged = _forged(entries) if kept == 2 else entries[:2]
    assert verdict(forged, end_of(forged)) is None
    found = verdict(forged, end_of(forged), kept=ChainLink(kept, entries[kept - 1].hash))
    assert found is not None
    assert found.sequence == first_bad


def test_a_chain_without_its_head_or_without_anything_is_not_whole() -> None:
    entries = chain(2)
    assert verdict(entries, None) == BrokenLink(3, "the head of the chain is missing")
    assert verdict([], None, kept=end_of(entries)) is not None


def test_a_checkpoint_is_not_believed_against_a_head_that_was_kept() -> None:
    entries = chain(4)
    kept, begin = ChainLink(2, entries[1].hash), ChainLink(2, "f" * 64)
    rest = chain(2, begin)
    assert verdict(rest, end_of(rest), begin=begin) is None
    assert verdict(rest, end_of(rest), begin=begin, kept=kept) is not None


def test_a_head_is_read_as_it_is_printed() -> None:
    link = end_of(chain(3))
    assert parse_link(f" {link}\n") == link
    for text in ("", "3", "3:abc", f"-1:{'a' * 64}", f"{'9' * 19}:{'a' * 64}", f"3:{'A' * 64}"):
        with pytest.raises(InvalidDefinition):
            parse_link(text)
