"""A sign-in code signs in once, whoever shows it at the same moment, on whichever process and database."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from api.worlds import OUR_PAGE

from horarium.testing import TestService, service


@pytest.fixture
def processes(database_url: str) -> Iterator[list[TestService]]:
    """Two services on one database: those of the tests have one key."""
    with ExitStack() as stack:
        yield [stack.enter_context(service(database=database_url)) for _ in "ab"]


@pytest.mark.both_databases
def test_of_many_requests_with_one_code_one_signs_in(processes: list[TestService]) -> None:
    code = processes[0].http().post("/api/session/link").json()["code"]

    def signs_in(spelled: tuple[int, str]) -> int:
        number, shown = spelled
        http = processes[number % 2].http(token=None)
        return http.post("/api/session", json={"token": shown}, headers=OUR_PAGE).status_code

    # The same code in other letters is the same code.
    spellings = [code, f"{code}=", f"{code[:20]}!{code[20:]}", f"{code}=="] * 2
    with ThreadPoolExecutor(len(spellings)) as pool:
        statuses = sorted(pool.map(signs_in, enumerate(spellings)))
    assert statuses == [200] + [401] * (len(spellings) - 1)
