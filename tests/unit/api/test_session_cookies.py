"""What a session cookie holds, who can open it, and how a browser is to keep it (RFC 6265)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horarium.platform.http.browser_sessions import (
    MAX_SECRET,
    OpenedCode,
    OpenedSession,
    SessionCookies,
    clear_header,
    set_header,
)

KEY = b"k" * 32
OURS = SessionCookies(KEY)
UNTIL = 1_772_323_200_000_000


def test_another_process_with_the_key_opens_it() -> None:
    assert SessionCookies(KEY).unseal(OURS.seal("hor_secret", UNTIL)) == OpenedSession("hor_secret", UNTIL)
    assert SessionCookies(KEY).name == OURS.name


def test_another_installation_knows_neither_its_name_nor_what_is_in_it() -> None:
    other = SessionCookies(b"o" * 32)
    assert other.name != OURS.name
    assert other.unseal(OURS.seal("hor_secret", UNTIL)) is None


def test_nobody_sees_the_token_and_no_two_are_alike() -> None:
    first, second = OURS.seal("hor_secret", UNTIL), OURS.seal("hor_secret", UNTIL)
    assert first != second
    assert "hor_secret" not in repr(OURS.unseal(first))


@given(place=st.integers(min_value=0), mask=st.integers(min_value=1, max_value=63))
def test_a_changed_one_opens_nothing(place: int, mask: int) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    value = OURS.seal("hor_a secret of some length", UNTIL)
    where = place % (len(value) - 1)  # the last letter has bits that mean nothing
    other = letters[letters.index(value[where]) ^ mask]
    assert OURS.unseal(value[:where] + other + value[where + 1 :]) is None


@pytest.mark.parametrize("value", ["", "x", "====", "ü", "a" * 100_000, "\x00", OURS.seal("s", 0)[:20]], ids=range(7))
def test_nonsense_opens_nothing(value: str) -> None:
    assert OURS.unseal(value) is None


def test_a_code_is_no_cookie_and_a_cookie_no_code() -> None:
    code = OURS.seal_code("hor_secret", UNTIL)
    opened, within = OURS.unseal_code(code), OURS.unseal_code(OURS.seal_code("hor_secret", UNTIL, 7))
    assert opened is not None
    assert within is not None
    assert opened == OpenedCode(opened.code_id, "hor_secret", UNTIL, None)
    assert within == OpenedCode(within.code_id, "hor_secret", UNTIL, 7)
    assert opened.code_id != within.code_id
    assert OURS.unseal(code.removeprefix("hsc_")) is None
    assert OURS.unseal_code("hsc_" + OURS.seal("hor_secret", UNTIL)) is None
    assert OURS.unseal_code(code.removeprefix("hsc_")) is None


def test_the_longest_token_fits_into_what_browsers_keep() -> None:
    assert len(f"{OURS.name}={OURS.seal('x' * MAX_SECRET, UNTIL)}") <= 4_096


def test_a_code_has_one_id_however_it_is_spelled() -> None:
    code = OURS.seal_code("hor_secret", UNTIL)
    ids = {
        opened.code_id
        for other in (code, f"{code}=", f"{code[:20]}!{code[20:]}", f"{code[:9]} {code[9:]}", f"{code}====")
        if (opened := OURS.unseal_code(other)) is not None
    }
    assert len(ids) == 1


def test_a_browser_is_told_to_show_it_to_us_alone() -> None:
    plain = set_header("n", "value", path="/jobs/", seconds=60, secure=False)
    assert plain == "n=value; Path=/jobs/; Max-Age=60; HttpOnly; SameSite=Strict"
    assert set_header("n", "value", path="/", seconds=-5, secure=True).endswith(
        "Max-Age=0; HttpOnly; SameSite=Strict; Secure"
    )
    assert clear_header("n", path="/").endswith("SameSite=Strict")
    assert clear_header("__Host-n", path="/") == "__Host-n=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict; Secure"


@pytest.mark.parametrize(
    ("path", "secure", "prefix"),
    [("/", False, ""), ("/jobs/", False, ""), ("/", True, "__Host-"), ("/jobs/", True, "__Secure-")],
)
def test_by_tls_no_other_host_can_set_it(path: str, secure: bool, prefix: str) -> None:
    name = OURS.name_for(path, secure=secure)
    assert name == f"{prefix}{OURS.name}"
    shown = [f"{name}=ours; {OURS.name}=plain"]
    assert OURS.shown_in(shown, secure=True) == (["ours"] if secure else [])
    assert OURS.shown_in([f"{name}=ours"], secure=False) == ["ours"]
    assert OURS.names_in(shown) == {name, OURS.name}


@pytest.mark.parametrize(
    ("headers", "values"),
    [
        ([], []),
        (["other=1"], []),
        ([f"other=1; {OURS.name}=near; {OURS.name}=far"], ["near", "far"]),
        (["a=1", f'{OURS.name}="quoted"'], ["quoted"]),
        ([f"{OURS.name}"], [""]),
        ([f"{OURS.name}=x;" * 1_000], ["x"]),
        (["a=1;" * 1_000 + f"{OURS.name}=x"], ["x"]),
        (["".join(f"{OURS.name}={n};" for n in range(20))], [str(n) for n in range(20)]),
    ],
)
def test_of_many_cookies_ours_are_found(headers: list[str], values: list[str]) -> None:
    assert OURS.shown_in(headers, secure=False) == values
