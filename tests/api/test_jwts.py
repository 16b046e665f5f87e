"""Signed tokens of services: whose signature is taken, for how long, and what they may do."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from horarium.clock import SystemClock
from horarium.errors import InvalidDefinition
from horarium.instant import SECOND, from_rfc3339
from horarium.settings import Settings
from horarium.testing import TestService, service

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

SECRET = "a secret of at least thirty-two bytes"
NOW = from_rfc3339("2026-03-01T00:00:00Z") // SECOND


@pytest.fixture
def horarium(database_url: str) -> Iterator[TestService]:
    knobs = {"jwt_secret": SECRET, "jwt_audience": "horarium", "jwt_issuer": "idp"}
    with service(at=NOW * SECOND, database=database_url, settings=knobs) as running:
        yield running


def claims(**changes: Any) -> dict[str, Any]:
    usual = {"sub": "ci", "role": "owner", "aud": "horarium", "iss": "idp", "exp": NOW + 60}
    return {name: value for name, value in {**usual, **changes}.items() if value is not None}


def signed(said: dict[str, Any], secret: str, algorithm: Any = "HS256") -> str:
    """By hand: the library would not sign what is wrong, nor with a public key as if it were a secret."""
    size = algorithm[2:] if algorithm in ("HS384", "HS512") else "256"
    parts = [json.dumps(part).encode() for part in ({"alg": algorithm, "typ": "JWT"}, said)]
    text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = hmac.new(secret.encode(), text, f"sha{size}").digest()
    return (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


def status(horarium: TestService, token: str, **headers: str) -> int:
    return horarium.http(token=token).get("/api/schedules", headers=headers).status_code


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
@pytest.mark.parametrize("how", ["secret", "set"])
def test_a_shared_secret_is_good_for_hashes_no_longer_than_itself(
    database_url: str, tmp_path: Path, algorithm: str, how: str
) -> None:
    for secret, expected in ((SECRET * 2, 200), (SECRET, 200 if algorithm == "HS256" else 401)):
        path = tmp_path / "jwks.json"
        path.write_text(json.dumps({"keys": [{**shared(secret, "one"), "alg": algorithm}]}))
        with opened(database_url, **({"jwks_file": path} if how == "set" else {"jwt_secret": secret})) as running:
            assert status(running, signed(claims(), secret, algorithm)) == expected


def test_history_names_the_subject(horarium: TestService) -> None:
    http = horarium.http(token=jwt.encode(claims(), SECRET))
    http.post("/api/schedules", json={"schedule_id": "s", "cron_expressions": ["0 2 * * *"], "workflow_type": "x"})
    [created] = http.get("/api/schedules/s/history").json()["events"]
    assert created["payload"]["command_context"]["principal"] == "ci"
    assert http.get("/api/schedules/s").json()["owner"] == "ci"


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": NOW - 31},
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": True},
        {"nbf": NOW + 31},
        {"sub": None},
        {"sub": ""},
        {"sub": "x" * 256},
        {"aud": "another"},
        {"aud": None},
        {"iss": "another"},
        {"iss": None},
        {"role": None},
        {"role": "emperor"},
        {"role": ["admin"]},
        {"namespace": 5},
        {"namespace": ""},
    ],
    ids=lambda changes: "-".join(f"{name}={str(value)[:10]}" for name, value in changes.items()),
)
def test_a_claim_that_is_missing_or_wrong_keeps_the_door_shut(horarium: TestService, changes: dict[str, Any]) -> None:
    assert status(horarium, signed(claims(**changes), SECRET)) == 401


@pytest.mark.parametrize("algorithm", [["HS256"], 5, None, "HS1", "none", "hs256"], ids=str)
def test_an_algorithm_that_we_do_not_take_is_refused(horarium: TestService, algorithm: Any) -> None:
    assert status(horarium, signed(claims(), SECRET, algorithm)) == 401


@pytest.mark.parametrize("changes", [{"exp": NOW - 29}, {"nbf": NOW + 29}], ids=["just expired", "about to begin"])
def test_clocks_may_differ_by_half_a_minute(horarium: TestService, changes: dict[str, Any]) -> None:
    assert status(horarium, jwt.encode(claims(**changes), SECRET)) == 200


def test_it_expires_by_our_clock(horarium: TestService) -> None:
    token = jwt.encode(claims(), SECRET)
    horarium.clock.advance(91)
    assert status(horarium, token) == 401


@pytest.mark.parametrize(
    "token",
    [
        jwt.encode(claims(), "another secret of thirty-two bytes!!"),
        jwt.encode(claims(), "", algorithm="none"),
        "a.b.c",
        "..",
        "x" * 9_000 + ".y.z",
        jwt.encode(claims(), SECRET)[:-2],
    ],
    ids=["other key", "unsigned", "no json", "empty", "long", "cut"],
)
def test_what_is_not_signed_by_us_is_refused(horarium: TestService, token: str) -> None:
    assert status(horarium, token) == 401


def test_a_tenant_s_token_is_good_at_home_only(horarium: TestService) -> None:
    horarium.http().post("/api/namespaces", json={"namespace": "tenant"})
    token = jwt.encode(claims(role="admin", namespace="tenant"), SECRET)
    http = horarium.http(token=token)
    assert http.get("/api/schedules").json()["namespace"] == "tenant"
    assert status(horarium, token, **{"X-Namespace": "default"}) == 404
    assert http.get("/api/namespaces").status_code == 403
    ghost = jwt.encode(claims(namespace="ghost"), SECRET)
    assert horarium.http(token=ghost).get("/api/schedules").json()["reason"] == "namespace_not_found"


def test_roles_hold(horarium: TestService) -> None:
    http = horarium.http(token=jwt.encode(claims(role="viewer"), SECRET))
    assert http.post("/api/schedules", json={}).status_code == 403


def test_without_a_key_no_signed_token_is_taken(database_url: str) -> None:
    with service(database=database_url) as plain:
        assert status(plain, jwt.encode(claims(), SECRET)) == 401


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────


def opened(database_url: str, **knobs: Any) -> Any:
    return service(at=NOW * SECOND, database=database_url, settings=knobs)


def shared(secret: str, name: str) -> dict[str, str]:
    value = base64.urlsafe_b64encode(secret.encode()).decode().rstrip("=")
    return {"kty": "oct", "kid": name, "k": value, "alg": "HS256"}


def test_a_set_of_keys_is_read_again_when_it_changes(database_url: str, tmp_path: Path) -> None:
    path, other = tmp_path / "jwks.json", SECRET[::-1]
    path.write_text(json.dumps({"keys": [shared(SECRET, "one")]}))
    with opened(database_url, jwks_file=path) as horarium:
        old = jwt.encode(claims(), SECRET, headers={"kid": "one"})
        new = jwt.encode(claims(), other, headers={"kid": "two"})
        assert (status(horarium, old), status(horarium, new)) == (200, 401)
        path.write_text(json.dumps({"keys": [shared(other, "two"), shared(SECRET, "three")]}))
        assert (status(horarium, old), status(horarium, new)) == (401, 200)
        path.write_text("half a fi")
        assert status(horarium, new) == 200, "a bad deployment locks nobody out"


@pytest.mark.parametrize(
    ("knobs", "field"),
    [
        ({"jwt_secret": "short"}, "jwt_secret"),
        ({"jwks_file": Path("/nonexistent/jwks.json")}, "jwks_file"),
        ({"jwt_key_file": Path("/nonexistent/key.pem")}, "jwt_key_file"),
        ({"jwks_file": "{}"}, "jwks_file"),
        ({"jwks_file": "[1]"}, "jwks_file"),
        ({"jwks_file": '{"keys": [5]}'}, "jwks_file"),
        ({"jwks_file": '{"keys": [{"kty": "XYZ"}]}'}, "jwks_file"),
        ({"jwt_key_file": "no key"}, "jwt_key_file"),
    ],
    ids=["short", "no-set", "no-key", "empty-set", "no-object", "no-keys", "unknown-kind", "no-pem"],
)
def test_a_key_that_cannot_be_used_is_told_at_the_start(
    database_url: str, tmp_path: Path, knobs: dict[str, Any], field: str
) -> None:
    for name, content in knobs.items():
        if name.endswith("_file") and isinstance(content, str):
            (tmp_path / name).write_text(content)
            knobs = {name: tmp_path / name}
    with pytest.raises(InvalidDefinition) as refused, opened(database_url, **knobs):
        pass
    assert list(refused.value.errors) == [field]


def test_the_usual_settings_trust_nobody(dialect: str) -> None:
    import structlog

    from horarium.api.jwts import Jwts

    assert not Jwts(Settings(), SystemClock(), structlog.get_logger()).trusted


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "ES256", "ES384", "EdDSA"])
@pytest.mark.parametrize("how", ["jwks", "pem"])
def test_a_token_that_is_signed_with_a_private_key_is_good(
    database_url: str, tmp_path: Path, algorithm: str, how: str
) -> None:
    pytest.importorskip("cryptography")
    private, public, jwk = key_pair(algorithm)
    path = tmp_path / "key"
    path.write_text(json.dumps({"keys": [jwk]}) if how == "jwks" else public)
    with opened(database_url, **{"jwks_file" if how == "jwks" else "jwt_key_file": path}) as horarium:
        assert status(horarium, jwt.encode(claims(), private, algorithm=algorithm)) == 200
        stranger, _, _ = key_pair(algorithm)
        assert status(horarium, jwt.encode(claims(), stranger, algorithm=algorithm)) == 401
        assert status(horarium, signed(claims(), public)) == 401


def key_pair(algorithm: str) -> tuple[str, str, dict[str, Any]]:
    """Private and public in PEM form, and the public one as a JWK."""
    asymmetric = pytest.importorskip("cryptography.hazmat.primitives.asymmetric")
    shapes = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    from importlib import import_module

    kinds = {each: import_module(f"{asymmetric.__name__}.{each}") for each in ("rsa", "ec", "ed25519")}
    curves = {"ES256": kinds["ec"].SECP256R1, "ES384": kinds["ec"].SECP384R1}
    if algorithm in curves:
        key = kinds["ec"].generate_private_key(curves[algorithm]())
    elif algorithm == "EdDSA":
        key = kinds["ed25519"].Ed25519PrivateKey.generate()
    else:
        key = kinds["rsa"].generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(shapes.Encoding.PEM, shapes.PrivateFormat.PKCS8, shapes.NoEncryption()).decode()
    public = key.public_key()
    pem = public.public_bytes(shapes.Encoding.PEM, shapes.PublicFormat.SubjectPublicKeyInfo).decode()
    made = jwt.get_algorithm_by_name(algorithm).to_jwk(public, as_dict=True)
    return private, pem, dict(made)
