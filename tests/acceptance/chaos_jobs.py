"""The application of the chaos test: a task that writes down that it was called, and sometimes fails."""

from __future__ import annotations

import os
import time
from hashlib import blake2b

from horarium import Horarium, Job

app = Horarium()


@app.task(name="note")
def note(context: Job) -> str:
    """One short line, appended: lines of several processes do not mix."""
    drawn = blake2b(context.key.encode(), digest_size=1).digest()[0]
    if drawn < 25:
        raise RuntimeError("not this time")
    time.sleep(drawn / 1_000)
    with open(os.environ["CHAOS_NOTES"], "a", encoding="ascii") as file:
        file.write(f"{context.run_id} {context.key}\n")
    return context.key
