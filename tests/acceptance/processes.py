"""Real processes for tests, quickly: forked from a server that has imported everything, without our threads."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess

_PRELOADED = ["acceptance.worker_main", "acceptance.crowd_main", "acceptance.steps_main", "acceptance.prompts_main"]


def start(target: Callable[..., None], *args: object) -> BaseProcess:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    process = context.Process(target=target, args=args)
    before = os.environ.get("PYTHONPATH")
    # The server looks for what to import there, and nowhere else.
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        process.start()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    return process


def finish(processes: list[BaseProcess], seconds: float) -> list[int | None]:
    """How each ended; one that hangs is killed, by its own id, and has None."""
    codes: list[int | None] = []
    for process in processes:
        process.join(seconds)
        codes.append(process.exitcode)
        if process.exitcode is None:
            process.kill()
            process.join()
    return codes
