"""What a signed JWT says about its bearer, once its signature and its times are good (RFC 7519, RFC 8725).

A key is used only with the algorithms of its own kind, so that nobody can sign with a public key as if it were
a shared secret. Times are told by our clock. Claims: `sub` is the principal, `role` one of ours, `namespace` its
home (without it: `default`).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jwt
from structlog.typing import FilteringBoundLogger

from horarium.clock import Clock
from horarium.errors import InvalidDefinition
from horarium.instant import SECOND
from horarium.operations.errors import Unauthorized
from horarium.settings import Settings
from horarium.store.migrate import DEFAULT_NAMESPACE
from horarium.wire.roles import Role

MAX_LENGTH = 8_192
_MAX_NAME = 255
_LEEWAY_SECONDS = 30
_LEAST_SECRET_BYTES = 32  # what the shortest hash takes
_KINDS = {"HS": "oct", "RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_ALGORITHMS = frozenset(
    {"HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512",
     "EdDSA"}
)  # fmt: skip


class Jwts:
    """Whose signatures we trust, as the settings say; a JWKS file that is replaced is read again."""

    def __init__(self, settings: Settings, clock: Clock, log: FilteringBoundLogger) -> None:
        """Raises InvalidDefinition for a key that cannot be used."""
        self._settings = settings
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._read_at: tuple[int, int] | None = None
        self._keys: tuple[Mapping[str, Any], ...] = ()
        self._secret = _secret(settings)
        self._pem = _pem(settings)
        if settings.jwks_file is not None:
            self._read_at = _stamp(settings.jwks_file)
            self._keys = _read_keys(settings.jwks_file)

    @property
    def trusted(self) -> bool:
        """Whether there is any key at all."""
        settings = self._settings
        return any(each is not None for each in (settings.jwt_secret, settings.jwks_file, settings.jwt_key_file))

    def identify(self, token: str) -> tuple[str, Role, str]:
        """Principal, role and home; raises Unauthorized."""
        if len(token) > MAX_LENGTH:
            raise Unauthorized("this token is too long")
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise Unauthorized("this is not a signed token") from None
        algorithm, name = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in _ALGORITHMS:
            raise Unauthorized("this token is signed with an algorithm that we do not take")
        claims = self._verified(token, algorithm, self._candidates(algorithm, name))
        self._check_times(claims)
        return _bearer(claims)

    def _verified(self, token: str, algorithm: str, keys: Iterable[Any]) -> Mapping[str, Any]:
        settings, why = self._settings, "no key of ours has signed it"
        for key in keys:
            try:
                return jwt.decode(
                    token,
                    key,
                    algorithms=[algorithm],
                    audience=settings.jwt_audience,
                    issuer=settings.jwt_issuer,
                    options={
                        "require": ["exp", "sub"],
                        "verify_aud": settings.jwt_audience is not None,
                        # By our own clock, below.
                        "verify_exp": False,
                        "verify_nbf": False,
                        "verify_iat": False,
                    },
                )
            except jwt.InvalidSignatureError:
                continue
            except jwt.PyJWTError as wrong:
                why = str(wrong)
        raise Unauthorized(f"this token is not good: {why}")

    def _candidates(self, algorithm: str, name: object) -> Iterable[Any]:
        kind = _KINDS[algorithm[:2]]
        if kind == "oct" and self._secret is not None and _is_long_enough(self._secret, algorithm):
            yield self._secret
        if kind != "oct" and self._pem is not None and _pem_fits(self._pem, algorithm):
            yield self._pem
        for key in self._current_keys():
            if key.get("kty") != kind or key.get("alg", algorithm) != algorithm or key.get("use", "sig") != "sig":
                continue
            if name is None or key.get("kid", name) == name:
                found = jwt.PyJWK.from_dict(dict(key), algorithm=algorithm)
                if kind != "oct" or _is_long_enough(found.key, algorithm):
                    yield found

    def _current_keys(self) -> tuple[Mapping[str, Any], ...]:
        """Of a file that cannot be read any more the keys that we know stay good: a bad deployment locks nobody out."""
        path = self._settings.jwks_file
        if path is None:
            return ()
        with self._lock:
            stamp = _stamp(path)
            if stamp != self._read_at:
                self._read_at = stamp
                try:
                    self._keys = _read_keys(path)
                except InvalidDefinition as wrong:
                    self._log.error("keys not read again", error=wrong.message)
            return self._keys

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now, leeway = self._clock.now() / SECOND, _LEEWAY_SECONDS
        for name in ("exp", "nbf"):
            at = claims.get(name)
            if at is not None and (not isinstance(at, int | float) or isinstance(at, bool)):
                raise Unauthorized(f"{name} of this token is no time")
        if now >= claims["exp"] + leeway:
            raise Unauthorized("this token has expired")
        if now < claims.get("nbf", now) - leeway:
            raise Unauthorized("this token is not good yet")


def _is_long_enough(secret: bytes, algorithm: str) -> bool:
    """RFC 7518 section 3.2: a key as long as the hash, at least."""
    return len(secret) * 8 >= int(algorithm[2:])


def looks_signed(token: str) -> bool:
    """Three parts, as RFC 7515 spells them; our own tokens have no dots."""
    return token.count(".") == 2


def expiry_of(token: str) -> float:
    """In seconds since 1970, of a token that was found good before."""
    return float(jwt.decode(token, options={"verify_signature": False})["exp"])


def _bearer(claims: Mapping[str, Any]) -> tuple[str, Role, str]:
    subject, role = claims["sub"], claims.get("role")
    namespace = claims.get("namespace", DEFAULT_NAMESPACE)
    for name, value in (("sub", subject), ("namespace", namespace)):
        if not isinstance(value, str) or not 1 <= len(value) <= _MAX_NAME or not value.isprintable():
            raise Unauthorized(f"{name} of this token is no name")
    if not isinstance(role, str) or role not in set(Role):
        raise Unauthorized(f"role of this token must be one of {', '.join(Role)}")
    return subject, Role(role), namespace


def _secret(settings: Settings) -> bytes | None:
    if settings.jwt_secret is None:
        return None
    secret = settings.jwt_secret.get_secret_value().encode()
    if len(secret) < _LEAST_SECRET_BYTES:
        raise InvalidDefinition({"jwt_secret": [f"must have {_LEAST_SECRET_BYTES} bytes at least"]})
    return secret


def _pem(settings: Settings) -> bytes | None:
    if settings.jwt_key_file is None:
        return None
    try:
        pem = settings.jwt_key_file.read_bytes()
    except OSError as wrong:
        raise InvalidDefinition({"jwt_key_file": [f"cannot be read: {wrong.strerror}"]}) from None
    if b"PRIVATE" in pem or not any(_pem_fits(pem, each) for each in _ALGORITHMS if each[:2] != "HS"):
        raise InvalidDefinition(
            {"jwt_key_file": ["is no public key in PEM form, of RSA, an elliptic curve or Ed25519"]}
        )
    return pem


def _pem_fits(pem: bytes, algorithm: str) -> bool:
    try:
        jwt.get_algorithm_by_name(algorithm).prepare_key(pem)
    except (jwt.PyJWTError, ValueError, TypeError, NotImplementedError):
        return False
    return True


def _read_keys(path: Path) -> tuple[Mapping[str, Any], ...]:
    """Each must be usable: a key that nobody can check would be found out by the first caller."""
    try:
        keys = json.loads(path.read_text("utf-8"))["keys"]
        for key in keys:
            jwt.PyJWK.from_dict(key)
    except OSError as wrong:
        raise InvalidDefinition({"jwks_file": [f"cannot be read: {wrong.strerror}"]}) from None
    except (ValueError, TypeError, KeyError, AttributeError, jwt.PyJWTError) as wrong:
        raise InvalidDefinition({"jwks_file": [f"is no set of usable keys: {str(wrong)[:200]}"]}) from None
    return tuple(keys)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
