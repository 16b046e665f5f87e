"""What `to_document` writes is read back as an equal definition, and is JSON."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horarium.core.document.document import changed_fields, from_canonical, merge_patch, parse_definition, to_document
from horarium.core.document.field import MAX_TIMEOUT_SECONDS, amount, seconds
from horarium.core.document.json_values import RESERVED
from horarium.core.policy.approval import ApprovalMode, RetryCause, WhileWaiting
from horarium.core.policy.queue import CatchupPolicy, OverlapPolicy
from horarium.instant import from_rfc3339, to_rfc3339

NOW = from_rfc3339("2026-01-01T00:00:00Z")

ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,20}", fullmatch=True)
words = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=12)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)
counts = st.integers(0, 2**31 - 1)
positive = st.integers(1, 2**31 - 1)
patience = st.integers(1, MAX_TIMEOUT_SECONDS)
amounts = st.one_of(st.integers(0, 10**12), st.decimals(0, 10**12, places=6).map(amount))
# Hypothesis also draws the words that stand in our own source, and some of these mean something as a name.
names = texts.filter(lambda name: name not in RESERVED and not name.startswith("$"))
keys = names.filter(lambda key: 1 <= len(key) <= 128)
scalars = st.one_of(
    texts, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)
)
json_values = st.recursive(
    st.none() | scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(names, json_values, max_size=4)
moments = st.integers(NOW, NOW * 2).map(to_rfc3339)


def optional(required: dict[str, Any], fields: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=fields)


specs = optional(
    {
        "cron_expressions": st.lists(
            st.sampled_from(["0 2 * * *", "*/5 * * * *", "H H * * *", "@daily", "0 0 L * *"]), min_size=1
        )
    },
    {
        "intervals": st.lists(
            optional({"every": st.sampled_from(["PT5M", "P1D"])}, {"offset": st.sampled_from(["PT1M", "PT0S"])}),
            max_size=2,
        ),
        "at": st.lists(moments.map(lambda text: text[:19] + "Z"), max_size=3),
        "timezone": st.sampled_from(["UTC", "Europe/Istanbul", "America/New_York"]),
        "start_at": st.integers(NOW - 10**15, NOW).map(to_rfc3339),
        "end_at": st.integers(NOW + 10**15, NOW * 2).map(to_rfc3339),
        "jitter_seconds": st.integers(0, 86_400_000).map(seconds),
        "dst_gap": st.sampled_from(["next_valid", "skip"]),
        "dst_fold": st.sampled_from(["first", "second", "both"]),
    },
)
inputs = st.one_of(objects, st.lists(json_values, max_size=3))
common = {
    "input": inputs,
    "connection": words,
    "queue": words,
    "global_model_id": words,
    "execution_timeout_seconds": patience,
    "run_timeout_seconds": patience,
    "timeout_seconds": patience,
    "delivery": st.sampled_from(["at_least_once", "at_most_once"]),
}
actions = st.one_of(
    optional(
        {"workflow_id": ids}, {"version": st.one_of(positive, st.just("latest")), "workflow_class": words} | common
    ),
    optional({"prompt": texts.filter(str.strip)}, common),
    optional(
        {"url": words.map(lambda word: f"https://example.com/{word}")},
        {
            "method": st.sampled_from(["GET", "put"]),
            "headers": st.dictionaries(words, words, max_size=1),
            "secret": words,
        }
        | common,
    ),
    optional({"task": words}, common | {"kind": st.sampled_from(["celery", "python"])}),
    optional(
        {"task": words, "kind": st.just("celery")},
        common | {"args": st.lists(words), "kwargs": st.dictionaries(words, words)},
    ),
    optional({"command": words}, common | {"input": st.lists(texts, max_size=3)}),
    optional({"kind": st.just("pull"), "workflow_type": words, "queue": words}, {"input": inputs}),
)
documents = optional(
    {"schedule_id": ids, "spec": specs, "action": actions},
    {
        "namespace": ids,
        "name": st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=30),
        "note": texts,
        "labels": st.dictionaries(keys, scalars, max_size=3),
        "memo": objects,
        "search_attributes": st.dictionaries(keys, st.one_of(scalars, st.lists(texts, max_size=3)), max_size=3),
        "source": st.sampled_from(["template", "runtime"]),
        "user_id": words,
        "owner": words,
        "assignee_id": ids,
        "workflow_assignment_id": ids,
        "calendars": st.lists(st.one_of(ids, st.just("holidays:US@America/New_York")), max_size=3),
        "pre_dispatch_condition": st.dictionaries(
            words.map(lambda word: f"/{word}"), st.fixed_dictionaries({"eq": json_values}), max_size=2
        ),
        "inputs_rotation": st.lists(objects, min_size=1, max_size=3),
        "budget": optional({}, {"spending_limit_credits": amounts, "max_daily_runs": counts}),
        "overlap_policy": st.sampled_from(list(OverlapPolicy)).map(str),
        "max_concurrency": positive,
        "max_buffered": counts,
        "cancel_grace_seconds": counts,
        "concurrency_key": words,
        "concurrency_limit": positive,
        "priority": st.integers(-100, 100),
        "catchup_policy": st.sampled_from(list(CatchupPolicy)).map(str),
        "max_catchup": st.integers(0, 1_000),
        "catchup_window_seconds": counts,
        "catchup_spread_seconds": counts,
        "misfire_grace_seconds": counts,
        "approval_policy": optional(
            {},
            {
                "requires_approval": st.booleans(),
                "mode": st.sampled_from(list(ApprovalMode)).map(str),
                "gates": st.lists(words, max_size=3),
                "expires_after_seconds": positive | st.none(),
                "approvals_required": st.integers(1, 100),
                "approvers": st.lists(st.sampled_from(["ada", "role:owner"]), max_size=2, unique=True),
                "allow_requester": st.booleans(),
                "while_waiting": st.sampled_from(WhileWaiting),
            },
        ),
        "retry_policy": optional(
            {},
            {
                "max_retries": st.integers(0, 1_000),
                "backoff_ms": counts,
                "max_backoff_ms": counts,
                "retry_on": st.lists(st.sampled_from(list(RetryCause)).map(str), max_size=4),
                "timeout_ms": positive,
            },
        ),
        "failure_policy": optional(
            {"fallback_assignee_id": words}, {"mode": st.sampled_from(["isolate", "halt", "fallback"])}
        ),
        "limits": optional(
            {},
            {
                "runtime_seconds": positive,
                "cost": amounts,
                "tokens": st.integers(0, 2**63 - 1),
                "tool_calls": counts,
                "allow_tools": st.lists(words, max_size=3),
            },
        ),
        "pause_on_failure": positive,
        "failing_after": positive,
        "max_runs": positive,
    },
)


@settings(max_examples=150, deadline=None)
@given(documents)
def test_a_definition_survives_being_written_and_read(document: dict[str, Any]) -> None:
    definition = parse_definition(document, now=NOW).definition
    canonical = to_document(definition)
    stored = json.loads(json.dumps(canonical, allow_nan=False))
    assert stored == canonical
    assert from_canonical(stored) == definition
    again = parse_definition(stored, now=NOW)
    assert again.definition == definition
    assert to_document(again.definition) == canonical
    assert changed_fields(definition, again.definition) == ()
    assert parse_definition({}, now=NOW, base=definition).definition == definition
    assert merge_patch(canonical, {}) == canonical


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Decimal("0.000000"), 0),
        (Decimal("5.000000"), 5),
        (Decimal("0.1"), 0.1),
        (Decimal("1234567890.123457"), 1234567890.123457),
        (Decimal("999999999999.999999"), "999999999999.999999"),
        (Decimal("900000000000.100001"), "900000000000.100001"),
    ],
    ids=str,
)
def test_an_amount_is_a_number_where_one_says_it_exactly(value: Decimal, written: object) -> None:
    assert amount(value) == written
    document = {"schedule_id": "s", "cron_expr": "0 2 * * *", "prompt": "x", "spending_limit_credits": written}
    definition = parse_definition(document, now=NOW).definition
    assert definition.budget.spending_limit_credits == value
    assert from_canonical(to_document(definition)) == definition


@pytest.mark.parametrize(
    ("milliseconds", "written"), [(0, 0), (2_000, 2), (1_500, 1.5), (86_399_999, 86399.999), (1, 0.001)]
)
def test_jitter_is_written_in_seconds(milliseconds: int, written: float) -> None:
    assert seconds(milliseconds) == written
    document = {"schedule_id": "s", "cron_expr": "0 2 * * *", "prompt": "x", "jitter_ms": milliseconds}
    assert parse_definition(document, now=NOW).definition.spec.jitter_ms == milliseconds
