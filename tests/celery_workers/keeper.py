"""Keeps programs for all workers of a test session: they end when the session does, however that ends.

python keeper.py <pid of the session> <JSON: a list of commands>
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

_LOOK_SECONDS = 0.5


def main() -> None:
    owner, commands = int(sys.argv[1]), json.loads(sys.argv[2])
    if os.fork():
        os._exit(0)  # whoever started it may end before the others do
    for command in commands:
        subprocess.Popen(command, stdin=subprocess.DEVNULL)
    while _is_alive(owner):
        time.sleep(_LOOK_SECONDS)
    # The keeper was given a group of its own; a task that hangs obeys no polite signal.
    os.killpg(0, signal.SIGKILL)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    main()
