"""Which agents may speak with each other: those of one line, from the outermost parent down, and siblings."""

from __future__ import annotations

from collections.abc import Mapping

from horarium.policy.names import PolicyError
from horarium.schedule.agent import parents_of


def may_speak(one: str, other: str, parents: Mapping[str, str | None]) -> bool:
    """`parents` holds both and all above them; whoever is not in it is nobody, and speaks with no one.

    Agents without a parent are siblings. Those who stand in a circle, or deeper than agents may, are refused.
    """
    if one not in parents or other not in parents:
        return False
    if one == other:
        return True
    try:
        above_one, above_other = parents_of(one, parents), parents_of(other, parents)
    except PolicyError:
        return False
    return other in above_one or one in above_other or parents[one] == parents[other]
