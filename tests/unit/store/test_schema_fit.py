"""How the tables of a database suit the code that looks at them, case by case."""

from __future__ import annotations

import pytest

from horarium.platform.database.schema import USABLE, Fit, SchemaState, judge

# Code whose first revision is 0017, whose newest is 0020, and that works on tables from 0019 on.
_CASES = [
    ("nothing there", None, Fit.NO_TABLES),
    ("its own", ("0020", "0020"), Fit.EXACT),
    ("its own, which older code may use too", ("0020", "0019"), Fit.EXACT),
    ("those of the release before", ("0019", "0019"), Fit.OLDER),
    ("those of the release before, which still older code may use", ("0019", "0018"), Fit.OLDER),
    ("older than that", ("0018", "0018"), Fit.TOO_OLD),
    ("of the first release", ("0017", "0017"), Fit.TOO_OLD),
    ("from before the first release", ("0016", "0016"), Fit.UNSUPPORTED),
    ("from before, whatever code it lets in", ("0016", "0021"), Fit.UNSUPPORTED),
    ("newer, and they say that this code may use them", ("0021", "0020"), Fit.NEWER),
    ("newer, and much older code may use them", ("0021", "0018"), Fit.NEWER),
    ("two releases newer, and still good", ("0022", "0020"), Fit.NEWER),
    ("newer, and only for newer code", ("0021", "0021"), Fit.TOO_NEW),
    ("of another numbering", ("9999", "9999"), Fit.TOO_NEW),
    ("its own, from which it was shut out", ("0020", "0021"), Fit.TOO_NEW),
    ("of another program", ("abc", "abc"), Fit.FOREIGN),
    ("ten thousand revisions on", ("10000", "10000"), Fit.TOO_NEW),
]


@pytest.mark.parametrize(("found", "fit"), [case[1:] for case in _CASES], ids=[case[0] for case in _CASES])
def test_tables_fit_code_from_the_release_before_to_what_they_declare(found: tuple[str, str] | None, fit: Fit) -> None:
    state = None if found is None else SchemaState(*found)
    assert judge(state, first="0017", oldest="0019", head="0020") is fit


def test_every_answer_has_a_case() -> None:
    assert {case[2] for case in _CASES} == set(Fit)
    assert {Fit.OLDER, Fit.EXACT, Fit.NEWER} == USABLE
