"""The application of Celery that `benchmarks/celery.py` measures: a task that does nothing, and entries of beat.

Set up as its manual does: JSON messages, prefork workers, the default prefetch. A worker is told by variables which
Redis it stands on, whether it keeps results there, and whether it reports to us.
"""

from __future__ import annotations

import os

from celery import Celery

REDIS = "HORARIUM_BENCH_REDIS"
SPOOL = "HORARIUM_BENCH_SPOOL"
RESULTS = "HORARIUM_BENCH_RESULTS"
ENTRIES = "HORARIUM_BENCH_ENTRIES"
TASK = "nothing"

_url = os.environ.get(REDIS, "redis://127.0.0.1:1/0")
app = Celery("celery_tasks", broker=_url, backend=os.environ.get(RESULTS), set_as_current=False)
app.conf.update(
    broker_connection_retry_on_startup=True,
    # Due a second after it was, so that all of them always are.
    beat_schedule={
        f"entry-{number}": {"task": TASK, "schedule": 1.0, "args": ("eu", 3)}
        for number in range(int(os.environ.get(ENTRIES, "0")))
    },
)
if os.environ.get(SPOOL):
    from horarium.celery import report_to

    report_to(app=app, spool=os.environ[SPOOL])


@app.task(name=TASK)  # type: ignore[untyped-decorator]  # Celery has no types
def nothing(region: str, size: int) -> int:
    return size
