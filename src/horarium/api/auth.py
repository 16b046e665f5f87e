"""Who is asking: the bearer of the operator's own token, of this process's, of one that we gave out, or of a JWT.

Or the holder of a client certificate. With a token and a certificate both must be good, and the token says who asks.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

from horarium.api.certificates import Certificate, Holders
from horarium.api.jwts import Jwts, expiry_of, looks_signed
from horarium.api.limits import Buckets
from horarium.errors import HorariumError, InvalidDefinition
from horarium.ids import parse_id
from horarium.instant import MINUTE, SECOND, Instant
from horarium.life.report_token import Fence
from horarium.operations.approvers import FIXED
from horarium.operations.caller import run_principal
from horarium.operations.errors import Unauthorized
from horarium.operations.resources import Resources
from horarium.store import tokens
from horarium.store.migrate import DEFAULT_NAMESPACE
from horarium.store.runs import read as runs_read
from horarium.store.tokens import TokenRow
from horarium.wire.roles import Role

# The principal of code in our own process.
EMBEDDED = "embedded"
# How exactly we remember when a token was last used: a write for each request would cost more than it tells.
_TOUCH_AFTER = 10 * MINUTE
_NOT_OF_THIS_RUN = "The token is not valid for this run."


class TokenMissing(Unauthorized):
    """Nothing was tried."""


@dataclass(frozen=True, slots=True)
class Identity:
    """`home` is the namespace of the credential; None = at home everywhere. `queues` None = all.

    `token_id` is that of a stored token, `ends_at` the end of a signed token or a certificate.
    """

    principal: str
    role: Role
    home: str | None
    queues: frozenset[str] | None = None
    token_id: bytes | None = None
    ends_at: Instant | None = None

    @property
    def everywhere(self) -> bool:
        """Only an admin of the default namespace may speak for other namespaces."""
        return self.role is Role.ADMIN and self.home in (None, DEFAULT_NAMESPACE)


class Authenticator:
    """Tells who has a token, and how often each was used lately."""

    def __init__(self, resources: Resources, own_secret: str | None = None) -> None:
        """Raises InvalidDefinition for keys in the settings that cannot be used."""
        settings = resources.settings
        self._resources = resources
        fixed = None if settings.token is None else settings.token.get_secret_value()
        self._own = Identity(EMBEDDED, Role.ADMIN, None)
        self._fixed = [
            (_digest(secret), known)
            for secret, known in ((fixed, Identity(FIXED, Role.ADMIN, None)), (own_secret, self._own))
            if secret is not None
        ]
        self._holders = Holders(settings, resources.clock)
        self._jwts = Jwts(settings, resources.clock, resources.telemetry.log)
        self._buckets = Buckets(
            resources.clock, per_second=settings.rate_limit_per_second, burst=settings.rate_limit_burst
        )

    def admit(self, authorization: str | None, certificate: Certificate | None = None) -> Identity:
        """Raises Unauthorized, and RateLimited for one who asks too often."""
        known = self.know(authorization, certificate)
        if known is not self._own:  # our own program slows nobody down but itself
            self._buckets.take(_digest(f"principal {known}" if authorization is None else bearer_of(authorization)))
        return known

    def know(
        self, authorization: str | None, certificate: Certificate | None = None, *, again: bool = False
    ) -> Identity:
        """The same, without counting; `again`: in the midst of a long answer."""
        holder = None
        if certificate is not None and self._holders:
            holder = Identity(*self._holders.identify(certificate), ends_at=int(certificate.expires_at) * SECOND)
        if holder is not None and authorization is None:
            return holder
        recognise = self.recognise_again if again else self.recognise
        return recognise(bearer_of(authorization))

    def admit_target(self, token: str, run_id: str) -> Identity:
        """Whoever shows the token of a run may speak for that run, in its own namespace, and do nothing else."""
        return self._admit_of_run(token, run_id, self._resources.tokens.fence_of)

    def admit_any_target(self, shown: Sequence[tuple[str, str]]) -> Identity:
        """Whoever shows a token that we made, with its run, may speak for the runs whose tokens it shows.

        That a run is there no more is told where it is asked for: it must not keep the others from being heard.
        """
        for token, run_id in shown:
            with suppress(InvalidDefinition):
                key = parse_id(run_id, "run_id")
                if self._resources.tokens.fence_of(token, key) is not None:
                    self._buckets.take(_digest(token))
                    return Identity(run_principal(key), Role.AGENT, DEFAULT_NAMESPACE)
        raise Unauthorized("None of the report tokens is valid for its run.")

    def admit_push(self, token: str, run_id: str) -> Identity:
        """Whoever shows the push token of a run may say that there is news of it."""
        return self._admit_of_run(token, run_id, self._resources.tokens.fence_of_push)

    def _admit_of_run(self, token: str, run_id: str, fence_of: Callable[[str, bytes], Fence | None]) -> Identity:
        try:
            key = parse_id(run_id, "run_id")
        except InvalidDefinition:
            raise Unauthorized(_NOT_OF_THIS_RUN) from None
        if fence_of(token, key) is None:
            raise Unauthorized(_NOT_OF_THIS_RUN)
        self._buckets.take(_digest(token))
        namespace = self._resources.database.glance(lambda connection: runs_read.namespace_of(connection, key))
        if namespace is None:
            raise Unauthorized(_NOT_OF_THIS_RUN)
        return Identity(run_principal(key), Role.AGENT, namespace)

    def needs_nobody(self, authorization: str | None, certificate: Certificate | None = None) -> bool:
        """Tell whether the caller can be identified at once, without the database."""
        if certificate is not None and authorization is None:
            return False
        return self._at_once(bearer_of(authorization)) is not None

    def recognise(self, secret: str) -> Identity:
        at_once = self._at_once(secret)
        if at_once is not None:
            return at_once
        if self._jwts.trusted and looks_signed(secret):
            return Identity(*self._jwts.identify(secret), ends_at=int(expiry_of(secret)) * SECOND)
        now = self._resources.clock.now()
        row = self._resources.database.glance(lambda connection: tokens.find_by_secret(connection, secret, now=now))
        if row is None:
            raise Unauthorized("The token is unknown, revoked or expired.")
        self._touch(row, now)
        return Identity(row.subject or row.name, Role(row.role), row.namespace, row.queues, row.token_id)

    def recognise_again(self, secret: str) -> Identity:
        """In the midst of a long answer: a signed token ends when it says, without the leeway of a new request."""
        known = self.recognise(secret)
        if self._is_signed(secret) and self._resources.clock.now() / SECOND >= expiry_of(secret):
            raise Unauthorized("The token has expired.")
        return known

    def ends_at(self, secret: str) -> Instant | None:
        """When a token that was found good ends by what stands in it; None = we are asked each time."""
        return int(expiry_of(secret)) * SECOND if self._is_signed(secret) else None

    def _is_signed(self, secret: str) -> bool:
        return self._jwts.trusted and looks_signed(secret) and self._at_once(secret) is None

    def _at_once(self, secret: str) -> Identity | None:
        """Find the holder of the operator's token or of this process's token."""
        digest = _digest(secret)
        return next((known for fixed, known in self._fixed if hmac.compare_digest(digest, fixed)), None)

    def _touch(self, row: TokenRow, now: Instant) -> None:
        if row.last_used_at is None or now - row.last_used_at > _TOUCH_AFTER:
            with suppress(HorariumError):  # a note for people; nobody is turned away for want of it
                self._resources.database.write(lambda connection: tokens.touch(connection, row.token_id, now=now))


def bearer_of(authorization: str | None) -> str:
    scheme, _, secret = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise TokenMissing("A token is required. Send `Authorization: Bearer …`.")
    return secret.strip()


def credential_of(authorization: str | None, principal: str | None) -> str:
    """By what the share of somebody who was let in is counted: the token, since `bearer` can be spelled at will."""
    return _digest(f"principal {principal}" if authorization is None else bearer_of(authorization)).hex()


def _digest(secret: str) -> bytes:
    """Hash a secret to a fixed length, so that a comparison reveals nothing."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
