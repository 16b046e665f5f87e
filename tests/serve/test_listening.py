"""How the server listens: an answer leaves at once."""

from __future__ import annotations

import socket

from horarium.serve.process import listen


def test_the_second_piece_of_an_answer_does_not_wait_for_the_first_to_be_acknowledged() -> None:
    """A client that keeps its connection may take 40 ms to acknowledge."""
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
