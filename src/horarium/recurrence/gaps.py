"""How close together the occurrences of a spec are, as far as a bounded look can tell.

Each part is looked at alone, since a cron that is dense in December only would be hidden behind an hourly one; then
all of them together, for the gaps between parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

from horarium.instant import SECOND, Instant
from horarium.recurrence.interval import Interval
from horarium.recurrence.spec import Part, Spec

# The seconds of one minute and more: whatever a cron says, its closest seconds are among them.
_OF_A_PART = 120
_OF_ALL = 1_000


def shortest_gap(spec: Spec, *, after: Instant, enough: int) -> int | None:
    """In seconds; None = there are no two occurrences. A gap below `enough` ends the search."""
    found: int | None = None
    for gap in _gaps(spec, after):
        if found is None or gap < found:
            found = gap
        if found < enough:
            break
    return found


def _gaps(spec: Spec, after: Instant) -> Iterator[int]:
    begin = max(after, spec.start_at or after) // SECOND
    end = None if spec.end_at is None else spec.end_at // SECOND
    if len(spec.parts) > 1:
        for part in spec.parts:
            yield from _of_part(part, begin, end)
        yield from ((two - one) // SECOND for one, two in pairwise(islice(spec.occurrences(after), _OF_ALL)))
    else:
        yield from _of_part(spec.parts[0], begin, end)


def _of_part(part: Part, begin: int, end: int | None) -> Iterator[int]:
    if isinstance(part, Interval):
        yield part.every
        return
    before = part.next_after(begin - 1)
    for _ in range(_OF_A_PART):
        following = None if before is None else part.next_after(before)
        if before is None or following is None or (end is not None and following > end):
            return
        yield following - before
        before = following
