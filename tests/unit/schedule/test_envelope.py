"""Encoded inputs: what the Durable Workflow client sends is read, what nobody could have meant is refused."""

from __future__ import annotations

import base64
import struct
import time
from typing import Any

import pytest

from horarium.core.document.json_values import DOCUMENT, FINGERPRINT, MAGIC, decode_input, is_envelope, shown_input
from horarium.core.policy.queue import PolicyError

HEAD = MAGIC + FINGERPRINT


def sealed(datum: bytes, head: bytes = HEAD) -> dict[str, str]:
    return {"codec": "avro", "blob": base64.b64encode(head + datum).decode()}


def zigzag(number: int) -> bytes:
    left = (number << 1) ^ (number >> 63)
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


@pytest.mark.parametrize(
    ("blob", "value"),
    [
        # From the published client 2.12.0.
        ("wwHioz3/VYAiNwwA", []),
        ("wwHioz3/VYAiNwwCDgICYQQCAAA=", [{"a": 1}]),
    ],
)
def test_the_published_vectors_are_read(blob: str, value: Any) -> None:
    assert decode_input({"codec": "avro", "blob": blob}) == value


@pytest.mark.parametrize(
    ("datum", "value"),
    [
        (b"\x00", None),
        (b"\x02\x01", True),
        (b"\x02\x00", False),
        (b"\x04" + zigzag(-1), -1),
        (b"\x04" + zigzag(2**63 - 1), 2**63 - 1),
        (b"\x04" + zigzag(-(2**63)), -(2**63)),
        (b"\x06" + struct.pack("<d", 0.5), 0.5),
        (b"\x08\x04\x00\xff", "AP8="),
        (b"\x0a" + zigzag(len("ü€".encode())) + "ü€".encode(), "ü€"),
        (b"\x0c\x02\x00\x02\x02\x01\x00", [None, True]),
        (b"\x0c\x03\x06\x00\x02\x01\x00", [None, True]),
        (b"\x0e\x02\x02a\x00\x02\x02b\x0c\x00\x00", {"a": None, "b": []}),
    ],
    ids=[
        "null", "true", "false", "negative", "largest", "smallest", "double", "bytes", "text", "two blocks",
        "a block with its size", "map",
    ],
)  # fmt: skip
def test_every_branch_of_the_schema_is_read(datum: bytes, value: Any) -> None:
    found = decode_input(sealed(datum))
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "value",
    [None, [], {}, [1], {"codec": "avro"}, {"codec": "avro", "blob": "x", "more": 1}, {"codec": "h264", "blob": "x"}],
    ids=str,
)
def test_what_is_in_no_envelope_is_left_alone(value: Any) -> None:
    assert decode_input(value) is value
    assert shown_input(value) is value


def test_only_an_object_of_exactly_two_keys_is_an_envelope() -> None:
    assert is_envelope({"codec": "avro", "blob": ""})
    assert not is_envelope({"codec": "avro"})
    assert not is_envelope(["codec", "blob"])


@pytest.mark.parametrize(
    ("blob", "text"),
    [
        (7, "base64 string"),
        ("not base64!", "not base64"),
        ("ü", "not base64"),
        ("", "mark"),
        (sealed(b"\x00", b"\xc3\x01\x00")["blob"], "schema"),
        (sealed(b"\x00", MAGIC + b"\x00" * 8)["blob"], "schema"),
        (sealed(b"")["blob"], "too early"),
        (sealed(b"\x00\x00")["blob"], "after its end"),
        (sealed(b"\x10")["blob"], "value type 8 is unknown"),
        (sealed(b"\x01")["blob"], "value type -1 is unknown"),
        (sealed(b"\x02\x02")["blob"], "neither true nor false"),
        (sealed(b"\x04" + b"\xff" * 10)["blob"], "64 bits"),
        (sealed(b"\x04" + b"\xff" * 9 + b"\x7f")["blob"], "64 bits"),
        (sealed(b"\x06" + struct.pack("<d", float("nan")))["blob"], "NaN"),
        (sealed(b"\x06" + struct.pack("<d", float("inf")))["blob"], "infinite"),
        (sealed(b"\x08\x01")["blob"], "too early"),
        (sealed(b"\x0a" + zigzag(2**40))["blob"], "too early"),
        (sealed(b"\x0a\x02\xff")["blob"], "UTF-8"),
        (sealed(b"\x0a\x02\x00")["blob"], "U+0000"),
        (sealed(b"\x0c" + zigzag(2**62))["blob"], "too early"),
        (sealed(b"\x0e\x02\x02a")["blob"], "too early"),
        (sealed(b"\x0c\x02" * (DOCUMENT.depth + 1))["blob"], "nested deeper"),
    ],
)
def test_a_bad_blob_is_refused_with_the_reason(blob: Any, text: str) -> None:
    envelope = {"codec": "avro", "blob": blob}
    with pytest.raises(PolicyError) as refused:
        decode_input(envelope)
    assert (refused.value.field, text in refused.value.text) == ("blob", True), refused.value.text
    assert shown_input(envelope) is envelope


def test_nesting_up_to_the_bound_is_read() -> None:
    value = decode_input(sealed(b"\x0c\x02" * (DOCUMENT.depth - 1) + b"\x0c\x00" + b"\x00" * (DOCUMENT.depth - 1)))
    depth = 1
    while value:
        [value], depth = value, depth + 1
    assert depth == DOCUMENT.depth


@pytest.mark.parametrize(
    "datum",
    [b"\x0c\x02" * 350_000, b"\x0c" + zigzag(2**40) + b"\x00" * 700_000, b"\x0a" + b"\x80" * 700_000],
    ids=["deep", "wide", "long number"],
)
def test_a_hostile_blob_is_refused_at_once(datum: bytes) -> None:
    envelope = sealed(datum)
    begun = time.process_time()
    with pytest.raises(PolicyError):
        decode_input(envelope)
    assert time.process_time() - begun < 1


def test_more_values_than_a_plain_document_may_have_are_refused() -> None:
    with pytest.raises(PolicyError, match=str(DOCUMENT.values)):
        decode_input(sealed(b"\x0c" + zigzag(DOCUMENT.values) + b"\x00" * DOCUMENT.values + b"\x00"))


# ── the fingerprint ──────────────────────────────────────────────────────────────────────────────────


def canonical_schema() -> str:
    """The schema in Avro's "Parsing Canonical Form": full names, a fixed order of attributes, no blanks."""
    space = "durable_workflow.protocol."

    def record(name: str, field: str, of: str) -> str:
        return f'{{"name":"{space}{name}","type":"record","fields":[{{"name":"{field}","type":{of}}}]}}'

    value = f'"{space}Value"'
    branches = [
        '"null"',
        *(
            record(f"{kind.title()}Value", kind, f'"{kind}"')
            for kind in ("boolean", "long", "double", "bytes", "string")
        ),
        record("ArrayValue", "items", f'{{"type":"array","items":{value}}}'),
        record("MapValue", "entries", f'{{"type":"map","values":{value}}}'),
    ]
    return record("Value", "value", f"[{','.join(branches)}]")


def crc64_avro(data: bytes) -> bytes:
    empty = 0xC15D213AA4D7A795
    crc = empty
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (empty if crc & 1 else 0)
    return crc.to_bytes(8, "little")


def test_the_fingerprint_is_that_of_the_schema() -> None:
    assert crc64_avro(canonical_schema().encode()) == FINGERPRINT


@pytest.mark.parametrize("count", [1, 19_000], ids=["small", "large"])
def test_an_input_is_decoded_once_however_often_it_is_asked_for(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    envelope = sealed(b"\x0c" + zigzag(count) + b"\x04\x0e" * count + b"\x00")
    first = decode_input(envelope)
    monkeypatch.setattr("horarium.core.document.json_values._Datum", None)
    assert decode_input({**envelope}) is first
