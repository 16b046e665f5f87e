"""Verify JSON Web Tokens (RFC 7519): signature, times and claims."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jwt
from structlog.typing import FilteringBoundLogger

from horarium.errors import InvalidDefinition
from horarium.instant import SECOND
from horarium.platform.clock import Clock
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.errors import Unauthorized
from horarium.platform.http.remote_keys import ALGORITHMS, fitting, own_keys, remote_keys
from horarium.platform.settings import Settings
from horarium.platform.wire import Role

MAX_LENGTH = 8_192
_MAX_NAME = 255
_MAX_FILE = 1_048_576
_LEEWAY_SECONDS = 30
_LAST_SECOND = 253_402_300_799  # of the year 9999; what is later, or no number at all, is no time
_LEAST_SECRET_BYTES = 32  # what the shortest hash takes
_CLAIMS = ("exp", "iat", "sub", "aud", "namespace")
_SHARED = ALGORITHMS["oct"]
_PUBLIC = tuple(each for kind, names in ALGORITHMS.items() if kind != "oct" for each in names)


class Jwts:
    """Trusted signatures according to the settings; a JWKS file that is replaced is read again."""

    def __init__(self, settings: Settings, clock: Clock, log: FilteringBoundLogger) -> None:
        """Raises InvalidDefinition for a key that cannot be used."""
        self._settings = settings
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._read_at: tuple[int, int] | None = None
        self._keys: tuple[jwt.PyJWK, ...] = ()
        self._remote = remote_keys(settings, clock, log)
        self._own = {**_secret(settings), **_pem(settings)}
        if settings.jwks_file is not None:
            self._read_at = _stamp(settings.jwks_file)
            self._keys = _read_keys(settings.jwks_file)
        if self.trusted and settings.jwt_audience is None:
            # Who trusts an issuer trusts it with its own tokens, not with those that it makes for others.
            raise InvalidDefinition({"jwt_audience": ["is required if JWTs are accepted: the name of this service"]})

    @property
    def trusted(self) -> bool:
        """Tell whether there is any key at all."""
        settings = self._settings
        keys = (settings.jwt_secret, settings.jwks_file, settings.jwks_url, settings.jwt_key_file)
        return any(each is not None for each in keys)

    def identify(self, token: str) -> tuple[str, Role, str]:
        """Principal, role and home; raises Unauthorized."""
        if len(token) > MAX_LENGTH:
            raise Unauthorized("The token is too long.")
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise Unauthorized("The token is not a signed JWT.") from None
        algorithm, name = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in (*_SHARED, *_PUBLIC):
            raise Unauthorized("The signature algorithm of the token is not supported.")
        if "crit" in header or "b64" in header:
            raise Unauthorized("The header of the token contains an unsupported extension.")
        claims = self._verified(token, algorithm, self._candidates(algorithm, name))
        check_times(claims, self._clock.now() // SECOND, self._settings.jwt_max_lifetime_seconds)
        return _bearer(claims, everywhere=self._settings.jwt_everywhere)

    def _verified(self, token: str, algorithm: str, keys: Iterable[Any]) -> Mapping[str, Any]:
        settings, why = self._settings, "it is not signed with a trusted key"
        for key in keys:
            try:
                return jwt.decode(
                    token,
                    key,
                    algorithms=[algorithm],
                    audience=settings.jwt_audience,
                    issuer=settings.jwt_issuer,
                    options={
                        "require": list(_CLAIMS),
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
        raise Unauthorized(f"The token is invalid: {why}.")

    def _candidates(self, algorithm: str, name: str | None) -> Iterable[Any]:
        """The operator's own key has no name: it is tried whatever the token calls its key."""
        if (own := self._own.get(algorithm)) is not None:
            yield own
        yield from fitting(self._current_keys(), algorithm, name)
        if algorithm in _PUBLIC and self._remote is not None:
            yield from fitting(self._remote.current(name), algorithm, name)

    def _current_keys(self) -> tuple[jwt.PyJWK, ...]:
        """Read the keys of the file.

        While it is unreadable, the last keys stay valid: a bad deployment denies no login.
        """
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
                    self._log.error("jwt_keys_reload_failed", error=wrong.message)
            return self._keys


def check_times(claims: Mapping[str, Any], now: int, longest: int) -> None:
    """Raises Unauthorized. Clocks may differ by half a minute; the lifetime is counted by one clock, the issuer's."""
    for name in ("exp", "iat", "nbf"):
        if name in claims and not _is_time(claims[name]):
            raise Unauthorized(f"The claim {name} of the token is not a valid time.")
    expires, issued = claims["exp"], claims["iat"]
    if now >= expires + _LEEWAY_SECONDS:
        raise Unauthorized("The token has expired.")
    if now < max(issued, claims.get("nbf", issued)) - _LEEWAY_SECONDS:
        raise Unauthorized("The token is not valid yet.")
    if not 0 < expires - issued <= longest:
        raise Unauthorized(
            f"The token is valid for too long. Issue tokens with at most {longest} seconds between iat and exp."
        )


def _is_time(value: object) -> bool:
    """NaN and Infinity, which some readers of JSON take for numbers, are later than nothing and than everything."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LAST_SECOND


def looks_signed(token: str) -> bool:
    """Three parts, as RFC 7515 spells them; our own tokens have no dots."""
    return token.count(".") == 2


def expiry_of(token: str) -> float:
    """In seconds since 1970, of a token that was found good before."""
    return float(jwt.decode(token, options={"verify_signature": False})["exp"])


def _bearer(claims: Mapping[str, Any], *, everywhere: bool) -> tuple[str, Role, str]:
    subject, role, namespace = claims["sub"], claims.get("role"), claims["namespace"]
    for name, value in (("sub", subject), ("namespace", namespace)):
        if not isinstance(value, str) or not 1 <= len(value) <= _MAX_NAME or not value.isprintable():
            raise Unauthorized(f"The claim {name} of the token is not a valid name.")
    if not isinstance(role, str) or role not in set(Role):
        raise Unauthorized(f"The claim role of the token must be one of {', '.join(Role)}.")
    if role == Role.ADMIN and namespace == DEFAULT_NAMESPACE and not everywhere:
        # An admin of that namespace is one of all: whoever issues tokens for tenants must not make such by a claim.
        raise Unauthorized(
            f"An admin of {DEFAULT_NAMESPACE} is an admin of all namespaces. Set jwt_everywhere to allow this for JWTs."
        )
    return subject, Role(role), namespace


def _secret(settings: Settings) -> dict[str, Any]:
    """Return the shared secret for each algorithm that it is long enough for (RFC 7518 section 3.2)."""
    if settings.jwt_secret is None:
        return {}
    secret = settings.jwt_secret.get_secret_value().encode()
    if len(secret) < _LEAST_SECRET_BYTES:
        raise InvalidDefinition({"jwt_secret": [f"must have at least {_LEAST_SECRET_BYTES} bytes"]})
    return {each: secret for each in _SHARED if jwt.get_algorithm_by_name(each).check_key_length(secret) is None}


def _pem(settings: Settings) -> dict[str, Any]:
    """Return the public key, parsed, for each algorithm that it fits."""
    if settings.jwt_key_file is None:
        return {}
    try:
        pem = settings.jwt_key_file.read_bytes()
    except OSError as wrong:
        raise InvalidDefinition({"jwt_key_file": [f"cannot be read: {wrong.strerror}"]}) from None
    found = {each: key for each in _PUBLIC if (key := _parsed(pem, each)) is not None}
    if b"PRIVATE" in pem or not found:
        raise InvalidDefinition(
            {"jwt_key_file": ["is not a PEM public key (RSA of at least 2048 bits, elliptic curve or Ed25519)"]}
        )
    return found


def _parsed(pem: bytes, algorithm: str) -> Any:
    """Return None for a key of another kind or curve, and for one that is too short."""
    known = jwt.get_algorithm_by_name(algorithm)
    try:
        key = known.prepare_key(pem)
        return key if known.check_key_length(key) is None else None
    except (jwt.PyJWTError, ValueError, TypeError, NotImplementedError):
        return None


def _read_keys(path: Path) -> tuple[jwt.PyJWK, ...]:
    try:
        with path.open(encoding="utf-8") as file:
            return own_keys(json.loads(file.read(_MAX_FILE)))
    except OSError as wrong:
        raise InvalidDefinition({"jwks_file": [f"cannot be read: {wrong.strerror}"]}) from None
    except (ValueError, RecursionError) as wrong:
        raise InvalidDefinition({"jwks_file": [f"is not a set of usable keys: {str(wrong)[:200]}"]}) from None


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
