"""The `queue_policy` object as the fields it stands for."""

import pytest

from horarium.core.policy.queue import (
    MIN_PRIORITY,
    CatchupPolicy,
    OverlapPolicy,
    PolicyError,
    QueuePolicy,
    parse_queue_policy,
)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, QueuePolicy()),
        ({"mode": "parallel"}, QueuePolicy(overlap_policy=OverlapPolicy.ALLOW_ALL)),
        ({"mode": "serial"}, QueuePolicy(overlap_policy=OverlapPolicy.SKIP)),
        ({"mode": "bufferOne"}, QueuePolicy(overlap_policy=OverlapPolicy.BUFFER_ONE)),
        ({"maxConcurrency": 3}, QueuePolicy(max_concurrency=3)),
        ({"max_concurrent": 3}, QueuePolicy(max_concurrency=3)),
        ({"priority": -5}, QueuePolicy(priority=-5)),
        ({"onMissed": "skip"}, QueuePolicy(catchup_policy=CatchupPolicy.SKIP)),
        ({"onMissed": "run_once"}, QueuePolicy(catchup_policy=CatchupPolicy.FIRE_ONCE)),
        (
            {"on_missed": "backfill", "maxBackfill": 7},
            QueuePolicy(catchup_policy=CatchupPolicy.FIRE_ALL, max_catchup=7),
        ),
        ({"mode": None, "priority": None}, QueuePolicy()),
    ],
    ids=str,
)
def test_the_object_is_read_as_plain_fields(document, expected):
    assert parse_queue_policy(document) == expected


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"mode": "sideways"}, "mode"),
        ({"onMissed": "cry"}, "on_missed"),
        ({"maxConcurrency": 0}, "max_concurrency"),
        ({"maxConcurrency": 1, "max_concurrent": 1}, "max_concurrency"),
        ({"priority": 1.5}, "priority"),
        ({"maxBackfill": -1}, "max_backfill"),
        ({"depth": 1}, "depth"),
        ("parallel", "queue_policy"),
    ],
    ids=str,
)
def test_a_wrong_object_is_refused_by_its_key(document, field):
    with pytest.raises(PolicyError) as caught:
        parse_queue_policy(document)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"overlap_policy": "skip"}, "mode"),
        ({"catchup_policy": "skip"}, "on_missed"),
        ({"max_concurrency": True}, "max_concurrency"),
        ({"priority": MIN_PRIORITY - 1}, "priority"),
        ({"max_catchup": -1}, "max_backfill"),
    ],
    ids=str,
)
def test_an_invalid_queue_policy_cannot_be_built(settings, field):
    with pytest.raises(PolicyError) as caught:
        QueuePolicy(**settings)
    assert caught.value.field == field
