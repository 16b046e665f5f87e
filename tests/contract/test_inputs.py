"""Inputs of the published client: encoded by it, kept as they came, and read by us."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import httpx
import pytest
from contract.documents import REPORT, nightly
from contract.published import ClientError, Process, Published

from horarium.core.document.json_values import DOCUMENT, decode_input
from horarium.features.forecast import service as forecast_service
from horarium.testing import service

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 63, -64, 64, 2**31, 2**63 - 1, -(2**63), 0.5, -1e300, 5e-324, "", "text",
    "ünïcödé 🜚", "x" * 5_000, [], {}, [[]], [None, [1, [2.5, "three"]]], {"a": {"b": [{"c": None}]}}, {"": ""},
    list(range(500)), {f"key {number}": number for number in range(300)},
]  # fmt: skip

# The header of an Avro blob: its magic and the fingerprint of the schema.
SCHEMA = bytes.fromhex("c301e2a33dff55802237")


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:30])
def test_what_the_client_encodes_is_what_we_read(client_process: Process, value: Any) -> None:
    blob = Published(client_process).encode(value=value)
    found = decode_input({"codec": "avro", "blob": blob})
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("arguments", [[], [{"a": 1}], ["x", 2, None, [True]]], ids=str)
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
def test_an_envelope_is_echoed_verbatim(published: Published, arguments: list[Any], sync: bool) -> None:
    client = replace(published, sync=sync)
    client.create_schedule(**nightly(action={**REPORT, "input": arguments}))
    envelope = {"codec": "avro", "blob": client.encode(value=arguments)}
    assert client.describe_schedule(schedule_id="nightly")["action"]["input"] == envelope
    assert client.list_schedules()["schedules"][0]["action"]["input"] == envelope


def test_an_update_replaces_the_envelope(published: Published) -> None:
    published.create_schedule(**nightly(action={**REPORT, "input": [1]}))
    published.update_schedule(schedule_id="nightly", action={"workflow_type": "report", "input": [2]})
    found = published.describe_schedule(schedule_id="nightly")["action"]
    assert decode_input(found["input"]) == [2]
    assert found["task_queue"] == "reports"


def test_no_input_is_no_key(published: Published) -> None:
    published.create_schedule(**nightly())
    assert "input" not in published.describe_schedule(schedule_id="nightly")["action"]


@pytest.mark.parametrize("fresh", [True, False])
def test_the_client_discovers_the_server_before_it_sends_an_input(published: Published, fresh: bool) -> None:
    replace(published, fresh=fresh).create_schedule(**nightly(action={**REPORT, "input": []}))


def test_discovery_works_with_a_worker_token_too(published: Published) -> None:
    both = {"control_token": published.options["token"], "worker_token": published.options["token"], "token": None}
    published.with_options(**both).create_schedule(**nightly(action={**REPORT, "input": [1]}))


def test_an_unknown_namespace_is_told_as_such_although_discovery_comes_first(published: Published) -> None:
    with pytest.raises(ClientError) as refused:
        published.with_options(namespace="nowhere").create_schedule(**nightly(action={**REPORT, "input": [1]}))
    assert refused.value.type == "NamespaceNotFound"


@pytest.mark.parametrize(
    ("blob", "text"),
    [
        ("???", "base64"),
        (base64.b64encode(b"\xc3\x01" + bytes(8) + b"\x00").decode(), "schema"),
        (
            base64.b64encode(SCHEMA + b"\x0c\x02" * (DOCUMENT.depth + 1)).decode(),
            "nested",
        ),
        (base64.b64encode(SCHEMA + b"\x0c\x02" * 300_000).decode(), "nested"),
    ],
    ids=["no base64", "other schema", "deep", "very deep"],
)
def test_an_envelope_that_nobody_could_open_is_refused_when_it_is_written(
    http: httpx.Client, blob: str, text: str
) -> None:
    body = nightly(action={**REPORT, "input": {"codec": "avro", "blob": blob}})
    answer = http.post("/api/schedules", json=body)
    assert answer.status_code == 422
    assert text in answer.json()["errors"]["action.input.blob"][0]


def test_an_envelope_given_with_a_trigger_is_checked_too(http: httpx.Client) -> None:
    http.post("/api/schedules", json=nightly())
    answer = http.post("/api/schedules/nightly/trigger", json={"inputs": {"codec": "avro", "blob": "?"}})
    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["inputs.blob"])


def test_a_claimed_run_has_its_input_in_plain_and_its_action_as_it_came(
    published: Published, http: httpx.Client
) -> None:
    published.create_schedule(**nightly(action={"workflow_type": "w", "task_queue": "plain", "input": [{"a": 1}]}))
    run_id = published.trigger_schedule(schedule_id="nightly")["run_id"]
    claimed = _claim(http, "plain")
    assert (claimed["run_id"], claimed["inputs"]) == (run_id, [{"a": 1}])
    assert claimed["action"]["input"]["codec"] == "avro"
    assert http.get(f"/api/runs/{run_id}").json()["inputs"] == [{"a": 1}]


@pytest.mark.parametrize("rotated", [False, True], ids=["input", "rotation"])
def test_a_launcher_is_given_the_input_in_plain(rotated: bool) -> None:
    envelope = {"codec": "avro", "blob": "wwHioz3/VYAiNwwCDgICYQQCAAA="}  # [{"a": 1}]
    inputs: dict[str, Any] = {"inputs_rotation": [envelope]} if rotated else {}
    action = {"workflow_type": "w"} if rotated else {"workflow_type": "w", "input": envelope}
    with service(at="2026-03-01T00:00:00Z") as horarium:
        horarium.create(schedule_id="nightly", spec={"cron_expressions": ["0 2 * * *"]}, action=action, **inputs)
        horarium.advance(hours=3)
        [delivery] = horarium.launcher.deliveries
        assert delivery.inputs == [{"a": 1}]
        [coming, *_] = forecast_service.preview(horarium.resources, horarium.caller, "nightly")
        assert coming.inputs == [{"a": 1}]


def _claim(http: httpx.Client, queue: str) -> dict[str, Any]:
    for _ in range(200):
        if found := http.post(f"/api/queues/{queue}/claim", json={"worker": "w"}).json()["runs"]:
            return dict(found[0])
    raise AssertionError("nothing was queued")
