"""`horarium` on a machine whose clock is wrong: a file says by how many seconds, and may say otherwise at any time.

    python skewed_main.py FILE worker --database …

Only `clock.py` asks what time it is, so that is the one place to bend.
"""

from __future__ import annotations

import sys
from pathlib import Path

from horarium.cli.main import main
from horarium.instant import SECOND, Instant
from horarium.platform.clock import SystemClock


class _SkewedClock(SystemClock):
    def now(self) -> Instant:
        return _true_now(self) + int(_file.read_text()) * SECOND


if __name__ == "__main__":
    _file, _true_now = Path(sys.argv.pop(1)), SystemClock.now
    SystemClock.now = _SkewedClock.now  # type: ignore[method-assign,assignment]  # the fault
    main()
