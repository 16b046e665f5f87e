"""Signed tokens: whose signature is taken, with which key, for how long, and what they may make of their bearer."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jwt
import pytest
import structlog
from signing import SECRET, claims, key_pair, shared, signed
from world import FakeClock

from horarium.errors import InvalidDefinition
from horarium.instant import SECOND
from horarium.platform.errors import Unauthorized
from horarium.platform.http.jwts import Jwts
from horarium.platform.settings import Settings
from horarium.platform.wire import Role

NOW = 1_772_323_200
DAY = 86_400


def jwts(**knobs: Any) -> Jwts:
    settings = Settings(**{"jwt_audience": "horarium", **knobs})
    return Jwts(settings, FakeClock(NOW * SECOND), structlog.get_logger())


def is_good(known: Jwts, token: str) -> bool:
    try:
        known.identify(token)
    except Unauthorized:
        return False
    return True


# ── claims ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"exp": NOW - 29, "iat": NOW - 60},
        {"nbf": NOW + 29},
        {"iat": NOW + 29},
        {"iat": NOW - 10, "exp": NOW - 10 + DAY},
        {"aud": ["another", "horarium"]},
        {"iss": "anybody"},
        {"exp": NOW + 0.5, "iat": NOW - 0.5},
        {"role": "admin", "namespace": "tenant"},
    ],
    ids=str,
)
def test_a_token_that_says_what_it_must_is_good(changes: dict[str, Any]) -> None:
    assert is_good(jwts(jwt_secret=SECRET), signed(claims(NOW, **changes)))


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": NOW - 31, "iat": NOW - 60},
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": True},
        {"exp": math.inf},
        {"exp": math.nan},
        {"exp": 10**400},
        {"iat": None},
        {"iat": -1},
        {"iat": math.nan},
        {"iat": NOW + 31},
        {"iat": NOW - 10, "exp": NOW - 9 + DAY},
        {"iat": NOW + 20, "exp": NOW + 10},
        {"nbf": NOW + 31},
        {"nbf": "soon"},
        {"sub": None},
        {"sub": ""},
        {"sub": "x" * 256},
        {"sub": "a\nb"},
        {"aud": "another"},
        {"aud": None},
        {"aud": []},
        {"aud": {"horarium": 1}},
        {"role": None},
        {"role": "emperor"},
        {"role": ["admin"]},
        {"namespace": None},
        {"namespace": 5},
        {"namespace": ""},
        {"role": "admin"},
    ],
    ids=lambda changes: "-".join(f"{name}={str(value)[:10]}" for name, value in changes.items()),
)
def test_a_claim_that_is_missing_or_wrong_keeps_the_door_shut(changes: dict[str, Any]) -> None:
    known = jwts(jwt_secret=SECRET)
    with pytest.raises(Unauthorized):
        known.identify(signed(claims(NOW, **changes)))


@pytest.mark.parametrize(("issuer", "good"), [("idp", True), ("another", False), (None, False)])
def test_the_issuer_is_asked_for_where_it_is_configured(issuer: str | None, good: bool) -> None:
    assert is_good(jwts(jwt_secret=SECRET, jwt_issuer="idp"), signed(claims(NOW, iss=issuer))) is good


def test_a_longer_life_must_be_allowed() -> None:
    week = signed(claims(NOW, exp=NOW + 7 * DAY))
    assert not is_good(jwts(jwt_secret=SECRET), week)
    assert is_good(jwts(jwt_secret=SECRET, jwt_max_lifetime_seconds=7 * DAY), week)
    assert not is_good(jwts(jwt_secret=SECRET, jwt_max_lifetime_seconds=59 + 1), signed(claims(NOW, exp=NOW + 61)))


def test_an_issuer_cannot_make_an_admin_of_the_whole_installation_unless_the_operator_says_so() -> None:
    token = signed(claims(NOW, role="admin"))
    with pytest.raises(Unauthorized, match="jwt_everywhere"):
        jwts(jwt_secret=SECRET).identify(token)
    assert jwts(jwt_secret=SECRET, jwt_everywhere=True).identify(token) == ("ci", Role.ADMIN, "default")


@pytest.mark.parametrize("knob", ["jwt_secret", "jwks_file", "jwks_url", "jwt_key_file"])
def test_without_an_audience_no_key_is_taken(tmp_path: Path, knob: str) -> None:
    """A token that the same issuer made for another service would open this one."""
    _, pem, jwk = key_pair("ES256")
    (tmp_path / "jwks_file").write_text(json.dumps({"keys": [jwk]}))
    (tmp_path / "jwt_key_file").write_text(pem)
    values = {"jwt_secret": SECRET, "jwks_url": "https://idp.invalid/jwks"}
    with pytest.raises(InvalidDefinition) as refused:
        jwts(**{knob: values.get(knob, tmp_path / knob), "jwt_audience": None})
    assert list(refused.value.errors) == ["jwt_audience"]


def test_the_usual_settings_trust_nobody() -> None:
    assert not jwts(jwt_audience=None).trusted


# ── signatures ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("algorithm", [["HS256"], 5, None, "HS1", "none", "hs256"], ids=str)
def test_an_algorithm_that_we_do_not_take_is_refused(algorithm: Any) -> None:
    assert not is_good(jwts(jwt_secret=SECRET), signed(claims(NOW), SECRET, algorithm))


@pytest.mark.parametrize(
    "token",
    [
        signed(claims(NOW), "another secret of thirty-two bytes!!"),
        jwt.encode(claims(NOW), "", algorithm="none"),
        "a.b.c",
        "..",
        "x" * 9_000 + ".y.z",
        signed(claims(NOW))[:-2],
        signed(claims(NOW), crit=["exp"]),
        signed(claims(NOW), b64=False),
        signed(claims(NOW), kid={"a": 1}),
    ],
    ids=["other key", "unsigned", "no json", "empty", "long", "cut", "critical", "detached", "kid is no name"],
)
def test_what_is_not_signed_by_us_is_refused(token: str) -> None:
    assert not is_good(jwts(jwt_secret=SECRET), token)


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
@pytest.mark.parametrize("how", ["secret", "set"])
def test_a_shared_secret_is_good_for_hashes_no_longer_than_itself(tmp_path: Path, algorithm: str, how: str) -> None:
    for secret, expected in ((SECRET * 2, True), (SECRET, algorithm == "HS256")):
        path = tmp_path / "jwks.json"
        path.write_text(json.dumps({"keys": [{**shared(secret, "one"), "alg": algorithm}]}))
        known = jwts(**({"jwks_file": path} if how == "set" else {"jwt_secret": secret}))
        assert is_good(known, signed(claims(NOW), secret, algorithm)) is expected


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "ES256", "ES384", "EdDSA"])
@pytest.mark.parametrize("how", ["jwks", "pem"])
def test_a_token_that_is_signed_with_a_private_key_is_good(tmp_path: Path, algorithm: str, how: str) -> None:
    private, public, jwk = key_pair(algorithm)
    path = tmp_path / "key"
    path.write_text(json.dumps({"keys": [jwk]}) if how == "jwks" else public)
    known = jwts(**{"jwks_file" if how == "jwks" else "jwt_key_file": path})
    assert is_good(known, jwt.encode(claims(NOW), private, algorithm=algorithm))
    stranger, _, _ = key_pair(algorithm, 1)
    assert not is_good(known, jwt.encode(claims(NOW), stranger, algorithm=algorithm))
    assert not is_good(known, signed(claims(NOW), public)), "a public key is no shared secret"


def test_a_token_cannot_bring_its_own_key() -> None:
    private, _, jwk = key_pair("ES256", 1)
    header = {"jwk": jwk, "jku": "https://attacker.invalid/jwks", "x5u": "https://attacker.invalid/cert"}
    token = jwt.encode(claims(NOW), private, algorithm="ES256", headers=header)
    assert not is_good(jwts(jwt_secret=SECRET), token)


# ── names of keys ────────────────────────────────────────────────────────────────────────────────────

ONE, TWO = SECRET, SECRET[::-1]


@pytest.mark.parametrize(
    ("keys", "signer", "kid", "good"),
    [
        pytest.param([("one", ONE), ("two", TWO)], ONE, "one", True, id="the key that it names"),
        pytest.param([("one", ONE), ("two", TWO)], ONE, "two", False, id="another key than it names"),
        pytest.param([("one", ONE), ("two", TWO)], TWO, None, True, id="no name at all"),
        pytest.param([("one", ONE)], ONE, "three", False, id="a name that nobody has"),
        pytest.param([(None, ONE)], ONE, "three", False, id="a key without a name for a token with one"),
        pytest.param([(None, ONE)], ONE, None, True, id="neither has a name"),
        pytest.param([("one", TWO), ("one", ONE)], ONE, "one", True, id="two of one name"),
    ],
)
def test_a_token_that_names_its_key_is_checked_with_that_one(
    tmp_path: Path, keys: list[tuple[str | None, str]], signer: str, kid: str | None, good: bool
) -> None:
    found = [{name: text for name, text in shared(secret, kid_ or "").items() if text} for kid_, secret in keys]
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": found}))
    header = {} if kid is None else {"kid": kid}
    assert is_good(jwts(jwks_file=tmp_path / "jwks.json"), signed(claims(NOW), signer, **header)) is good


@pytest.mark.parametrize(
    "changes",
    [
        {"use": "enc"},
        {"alg": "ES384"},
        {"key_ops": ["encrypt"]},
        {"key_ops": "verify"},
    ],
    ids=["for encryption", "for another algorithm", "for other operations", "no list"],
)
def test_a_key_that_is_for_something_else_is_not_taken(tmp_path: Path, changes: dict[str, Any]) -> None:
    private, _, jwk = key_pair("ES256")
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [{**jwk, "crv": "P-256", **changes}]}))
    try:
        known = jwts(jwks_file=tmp_path / "jwks.json")
    except InvalidDefinition:
        return  # told at the start, which is better
    assert not is_good(known, jwt.encode(claims(NOW), private, algorithm="ES256"))


def test_a_key_of_another_curve_than_the_token_says_is_a_refusal_and_no_fault(tmp_path: Path) -> None:
    private, _, _ = key_pair("ES256")
    _, _, jwk = key_pair("ES384")
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [jwk]}))
    token = jwt.encode(claims(NOW), private, algorithm="ES256")
    assert not is_good(jwts(jwks_file=tmp_path / "jwks.json"), token)


def test_a_weak_key_is_not_taken(tmp_path: Path) -> None:
    _, pem, jwk = key_pair("RS256", bits=1024)
    (tmp_path / "key.pem").write_text(pem)
    with pytest.raises(InvalidDefinition):
        jwts(jwt_key_file=tmp_path / "key.pem")
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [jwk]}))
    token = signed(claims(NOW), "x", "RS256")
    assert not is_good(jwts(jwks_file=tmp_path / "jwks.json"), token)


def test_a_set_of_keys_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": [shared(ONE, "one")]}))
    known = jwts(jwks_file=path)
    old, new = signed(claims(NOW), ONE, kid="one"), signed(claims(NOW), TWO, kid="two")
    assert (is_good(known, old), is_good(known, new)) == (True, False)
    path.write_text(json.dumps({"keys": [shared(TWO, "two"), shared(ONE, "three")]}))
    assert (is_good(known, old), is_good(known, new)) == (False, True)
    path.write_text("half a fi")
    assert is_good(known, new), "a bad deployment locks nobody out"


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
        ({"jwks_file": "[" * 100_000}, "jwks_file"),
        ({"jwks_file": json.dumps({"keys": [shared(SECRET, "one")] * 101})}, "jwks_file"),
        ({"jwt_key_file": "no key"}, "jwt_key_file"),
        ({"jwks_url": "http://idp.example.org/jwks"}, "jwks_url"),
        ({"jwks_url": "http://localhost/jwks"}, "jwks_url"),
        ({"jwks_url": "file:///etc/passwd"}, "jwks_url"),
        ({"jwks_url": "https://"}, "jwks_url"),
        ({"jwks_url": "https://user:password@idp.example.org/jwks"}, "jwks_url"),
        ({"jwks_url": "https://idp.example.org:x/jwks"}, "jwks_url"),
        ({"jwks_url": "https://idp.example.org/", "jwks_ca_file": Path("/nonexistent/ca.pem")}, "jwks_ca_file"),
    ],
    ids=lambda each: str(each)[:60] if isinstance(each, dict) else "",
)
def test_a_key_that_cannot_be_used_is_told_at_the_start(tmp_path: Path, knobs: dict[str, Any], field: str) -> None:
    for name, content in knobs.items():
        if name in ("jwks_file", "jwt_key_file") and isinstance(content, str):
            (tmp_path / name).write_text(content)
            knobs = {name: tmp_path / name}
    with pytest.raises(InvalidDefinition) as refused:
        jwts(**knobs)
    assert list(refused.value.errors) == [field]


def test_what_is_told_of_a_bad_set_shows_no_secret(tmp_path: Path) -> None:
    secret = shared(SECRET, "one")
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [{**secret, "kty": "XYZ", "alg": None}]}))
    with pytest.raises(InvalidDefinition) as refused:
        jwts(jwks_file=tmp_path / "jwks.json")
    assert secret["k"] not in str(refused.value)
