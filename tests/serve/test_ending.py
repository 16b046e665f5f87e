"""A process ends when it is told to, whatever the tasks of its users think of that."""

from __future__ import annotations

import asyncio

import pytest

from horarium.serve import process


async def _stubborn() -> None:
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


def test_a_task_that_cannot_be_cancelled_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_LEFT_SECONDS", 0.05)
    left: list[asyncio.Task[None]] = []

    async def main() -> None:
        left.append(asyncio.create_task(_stubborn()))
        await asyncio.sleep(0)

    process._run(main())
    assert not left[0].done()
    left[0]._log_destroy_pending = False  # type: ignore[attr-defined]  # nobody waits for it any more
    left[0].get_coro().close()


def test_what_went_wrong_is_told() -> None:
    async def main() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        process._run(main())
