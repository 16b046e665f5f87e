"""Signed tokens of every kind: the keys that sign them, and signatures that no honest library would make."""

from __future__ import annotations

import base64
import hmac
import json
from functools import lru_cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

SECRET = "a secret of at least thirty-two bytes"
_CURVES: dict[str, type[ec.EllipticCurve]] = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1}


def claims(now: int, **changes: Any) -> dict[str, Any]:
    """Those of a good token; one that is changed to None is left out."""
    usual = {"sub": "ci", "role": "owner", "namespace": "default", "aud": "horarium", "iat": now, "exp": now + 60}
    return {name: value for name, value in {**usual, **changes}.items() if value is not None}


def signed(said: dict[str, Any], secret: str = SECRET, algorithm: Any = "HS256", **header: Any) -> str:
    """By hand: the library would not sign what is wrong, nor with a public key as if it were a secret."""
    size = algorithm[2:] if algorithm in ("HS384", "HS512") else "256"
    parts = [json.dumps(part).encode() for part in ({"alg": algorithm, "typ": "JWT", **header}, said)]
    text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = hmac.new(secret.encode(), text, f"sha{size}").digest()
    return (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


def shared(secret: str, name: str) -> dict[str, str]:
    value = base64.urlsafe_b64encode(secret.encode()).decode().rstrip("=")
    return {"kty": "oct", "kid": name, "k": value, "alg": "HS256"}


@lru_cache
def key_pair(algorithm: str, number: int = 0, bits: int = 2048) -> tuple[str, str, dict[str, Any]]:
    """Private and public in PEM form, and the public one as a JWK; another `number` is another pair."""
    key: Any
    if algorithm in _CURVES:
        key = ec.generate_private_key(_CURVES[algorithm]())
    elif algorithm == "EdDSA":
        key = ed25519.Ed25519PrivateKey.generate()
    else:
        key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = key.public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    made = jwt.get_algorithm_by_name(algorithm).to_jwk(public, as_dict=True)
    return private, pem, dict(made)
