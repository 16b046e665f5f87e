"""How long does a test take that lets a month pass? One hourly schedule on `horarium.testing`, fire by fire."""

from __future__ import annotations

import argparse
import statistics
import time

import ground

from horarium.testing import service

_TARGET_SECONDS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=31)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    took = [_month(arguments.days) for _ in range(arguments.rounds)]
    wall, processor = (statistics.median(each) for each in zip(*took, strict=True))
    steps = arguments.days * 24
    print(f"{arguments.days} days of an hourly schedule, median of {arguments.rounds}; load {ground.load()}")
    print(
        f"{wall:.2f} s on the wall, {processor:.2f} s of processor time, {processor / steps * 1e3:.2f} ms for each run"
    )
    print(f"target for 31 days: {_TARGET_SECONDS} s")


def _month(days: int) -> tuple[float, float]:
    with service(at="2026-03-01T00:00:00Z") as horarium:
        horarium.create(schedule_id="hourly", cron_expressions=["0 * * * *"], workflow_type="report")
        wall, processor = time.perf_counter(), time.process_time()
        horarium.advance(days=days)
        took = time.perf_counter() - wall, time.process_time() - processor
        if len(horarium.launcher.deliveries) != days * 24:
            raise RuntimeError(f"{len(horarium.launcher.deliveries)} runs instead of {days * 24}")
        return took


if __name__ == "__main__":
    main()
