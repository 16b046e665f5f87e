"""Which keys of a JWK set may have signed a token: those of its kind, and of its name where it has one (RFC 7517)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import jwt

Key: TypeAlias = Mapping[str, Any]

MAX_KEYS = 100
KINDS: Mapping[str, str] = {"HS": "oct", "RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
"""Of the first two letters of an algorithm."""
_SHARED = "oct"
_UNUSABLE = (ValueError, TypeError, KeyError, AttributeError, jwt.PyJWTError)


def own_keys(document: object) -> tuple[Key, ...]:
    """Read the operator's key set. Raises ValueError for an unusable key, which is thus found at the start."""
    keys = _keys(document)
    for key in keys:
        try:
            jwt.PyJWK.from_dict(dict(key))
        except _UNUSABLE as wrong:
            raise ValueError(f"a key cannot be used: {type(wrong).__name__}") from None
    return keys


def published_keys(document: object) -> tuple[Key, ...]:
    """Read a published key set without unsupported keys (RFC 7517 section 5) and without shared secrets.

    A shared secret is none once it is published. Raises ValueError where nothing is left.
    """
    usable = tuple(key for key in _keys(document) if key.get("kty") != _SHARED and _is_usable(key))
    if not usable:
        raise ValueError("it contains no usable public key")
    return usable


def fitting(keys: Iterable[Key], algorithm: str, name: str | None) -> Iterator[jwt.PyJWK]:
    """A token that names its key is checked with that key only; one without a name may be of any key of its kind."""
    kind = KINDS[algorithm[:2]]
    for key in keys:
        if key.get("kty") != kind or key.get("alg", algorithm) != algorithm or not _signs(key):
            continue
        if name is not None and key.get("kid") != name:
            continue
        try:
            found = jwt.PyJWK.from_dict(dict(key), algorithm=algorithm)
            weak = found.Algorithm.check_key_length(found.key)
        except _UNUSABLE:
            continue  # such as one of another curve than the algorithm's
        if weak is None:
            yield found


def _keys(document: object) -> tuple[Key, ...]:
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise ValueError("it is not a JSON object with a list of keys")
    if len(keys) > MAX_KEYS:
        raise ValueError(f"it contains more than {MAX_KEYS} keys")
    return tuple(keys)


def _is_usable(key: Key) -> bool:
    try:
        jwt.PyJWK.from_dict(dict(key))
    except _UNUSABLE:
        return False
    return _signs(key)


def _signs(key: Key) -> bool:
    uses = key.get("key_ops", ["verify"])
    return key.get("use", "sig") == "sig" and isinstance(uses, list) and ("verify" in uses or "sign" in uses)
