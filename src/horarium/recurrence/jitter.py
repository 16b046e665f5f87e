"""How late an occurrence is on purpose: a hash of the schedule and the nominal time.

Not a dice roll: after any restart, on any machine, the same occurrence has the same delay.
"""

from __future__ import annotations

from hashlib import blake2b

from horarium.instant import Instant

_MILLISECOND = 1_000


def jitter_delay(uid: bytes, nominal: Instant, jitter_ms: int, next_nominal: Instant | None) -> Instant:
    """Microseconds, whole milliseconds, in [0, jitter]; always less than the time to the next nominal.

    The range is narrowed, not the result cut, so that a jitter as long as the period spreads evenly
    instead of heaping up at its end.
    """
    if jitter_ms <= 0:
        return 0
    widest = jitter_ms
    if next_nominal is not None:
        widest = min(widest, (next_nominal - nominal) // _MILLISECOND - 1)
    if widest <= 0:
        return 0
    digest = blake2b(uid + nominal.to_bytes(8, "big", signed=True), digest_size=8).digest()
    return int.from_bytes(digest, "big") % (widest + 1) * _MILLISECOND
