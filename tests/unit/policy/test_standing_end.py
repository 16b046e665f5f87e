"""The reasons for which a standing approval has ended."""

from __future__ import annotations

import pytest

from horarium.core.policy.votes import (
    DEFAULT_GRANT_LIFE,
    Circumstances,
    GrantTerms,
    StandingEnd,
    end_of_grant,
    expiry_of_grant,
)

NEW = GrantTerms(100, None, None, 0)


@pytest.mark.parametrize(
    ("terms", "seen", "now", "end"),
    [
        (NEW, Circumstances(), 100, None),
        (NEW, Circumstances(), 99 + DEFAULT_GRANT_LIFE, None),
        (NEW, Circumstances(), 100 + DEFAULT_GRANT_LIFE, StandingEnd.EXPIRED),
        (GrantTerms(100, 150, None, 0), Circumstances(), 149, None),
        (GrantTerms(100, 150, None, 0), Circumstances(), 150, StandingEnd.EXPIRED),
        (GrantTerms(100, None, 2, 1), Circumstances(), 100 + 2 * DEFAULT_GRANT_LIFE, None),
        (GrantTerms(100, None, 2, 2), Circumstances(), 100, StandingEnd.USED_UP),
        (NEW, Circumstances(credential_live=False), 100, StandingEnd.CREDENTIAL_ENDED),
        (NEW, Circumstances(role_kept=False), 100, StandingEnd.ROLE_CHANGED),
        (NEW, Circumstances(schedule_there=False), 100, StandingEnd.SCHEDULE_DELETED),
        (NEW, Circumstances(revision_kept=False), 100, StandingEnd.SCHEDULE_CHANGED),
        (NEW, Circumstances(workflow_there=False, gated_nodes_kept=False), 100, StandingEnd.WORKFLOW_DELETED),
        (NEW, Circumstances(gated_nodes_kept=False), 100, StandingEnd.WORKFLOW_CHANGED),
        (GrantTerms(100, 150, 1, 1), Circumstances(credential_live=False), 150, StandingEnd.CREDENTIAL_ENDED),
    ],
)
def test_the_first_reason_that_applies_ends_it(
    terms: GrantTerms, seen: Circumstances, now: int, end: StandingEnd | None
) -> None:
    assert end_of_grant(terms, seen, now) is end


def test_without_an_end_it_lasts_ninety_days() -> None:
    assert expiry_of_grant(NEW) == 100 + DEFAULT_GRANT_LIFE
    assert expiry_of_grant(GrantTerms(100, None, 3, 0)) is None
