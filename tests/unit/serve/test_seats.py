"""Who may have a connection."""

from __future__ import annotations

import pytest

from horarium.serve.sockets import ConnectionSeat, SeatLimits, Seats, fitting, seat_for

LIMITS = SeatLimits(most=3, of_address=2, reserve=3, reserve_of_address=2)


class Visitor:
    def __init__(self) -> None:
        self.has_left = False

    def leave(self) -> None:
        self.has_left = True


def enter(seats: Seats, address: str | None) -> tuple[Visitor, ConnectionSeat]:
    visitor = Visitor()
    return visitor, seats.take(visitor, address)


@pytest.mark.parametrize(
    ("taken", "of_address", "seat"),
    [
        pytest.param(0, 0, ConnectionSeat.ANYTHING, id="nobody is here"),
        pytest.param(2, 1, ConnectionSeat.ANYTHING, id="the last seat"),
        pytest.param(3, 0, ConnectionSeat.PROBES, id="all are taken"),
        pytest.param(2, 2, ConnectionSeat.PROBES, id="the address has its share"),
    ],
)
def test_a_seat_is_had_while_there_is_one_and_the_address_has_less_than_its_share(
    taken: int, of_address: int, seat: ConnectionSeat
) -> None:
    assert seat_for(LIMITS, taken, of_address) is seat


@pytest.mark.parametrize(
    ("wanted", "open_files", "most"), [(1_000, 20_000, 1_000), (1_000, 1_024, 512), (1_000, -1, 1_000), (5, 0, 1)]
)
def test_connections_leave_half_of_the_open_files_to_others(wanted: int, open_files: int, most: int) -> None:
    assert fitting(wanted, open_files) == most


def test_a_seat_that_is_given_back_can_be_taken_again() -> None:
    seats = Seats(LIMITS)
    first, seat = enter(seats, "a")
    enter(seats, "a")
    assert enter(seats, "a")[1] is ConnectionSeat.PROBES
    seats.give_back(first, seat, "a")
    assert enter(seats, "a")[1] is ConnectionSeat.ANYTHING


def test_whoever_has_no_address_has_no_share() -> None:
    seats = Seats(LIMITS)
    assert [enter(seats, None)[1] for _ in range(4)] == [ConnectionSeat.ANYTHING] * 3 + [ConnectionSeat.PROBES]


def test_an_address_that_fills_the_reserve_pushes_out_itself() -> None:
    seats = Seats(LIMITS)
    for _ in range(2):
        enter(seats, "attacker")
    waiting = [enter(seats, "attacker")[0] for _ in range(2)]
    probe, _ = enter(seats, "probe")
    enter(seats, "full")
    late, seat = enter(seats, "attacker")
    assert seat is ConnectionSeat.PROBES
    assert [each.has_left for each in (*waiting, late, probe)] == [True, False, False, False]


def test_a_full_reserve_makes_room_for_whoever_comes_last() -> None:
    seats = Seats(LIMITS)
    for name in "abc":
        enter(seats, name)
    reserve = [enter(seats, name)[0] for name in "defg"]
    assert [each.has_left for each in reserve] == [True, False, False, False]
