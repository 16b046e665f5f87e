"""Where a spool lies when nobody says: where the platform keeps what a user's programs remember."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

SPOOL_VARIABLE = "HORARIUM_CELERY_SPOOL"


def spool_places(environ: Mapping[str, str], platform: str, user: int, temporary: Path) -> tuple[Path, ...]:
    """The best first. A relative `XDG_STATE_HOME` is to be ignored, says the specification of base directories.

    A user without a home of its own, as in many containers, gets a place that does not outlive the machine.
    """
    said = environ.get(SPOOL_VARIABLE)
    if said:
        return (Path(said),)
    home, state = environ.get("HOME") or "", environ.get("XDG_STATE_HOME") or ""
    places = []
    if platform == "darwin":
        places += [Path(home) / "Library" / "Application Support"] if home.startswith("/") else []
    elif state.startswith("/"):
        places.append(Path(state))
    elif home.startswith("/"):
        places.append(Path(home) / ".local" / "state")
    named = [place / "horarium" / "celery-spool" for place in places]
    return (*named, temporary / f"horarium-celery-spool-{user}")


def usual_places(platform: str) -> tuple[Path, ...]:
    return spool_places(os.environ, platform, os.getuid(), Path(tempfile.gettempdir()))


def open_directory(places: Sequence[Path]) -> Path:
    """The first that is ours, or can be made; nobody else may look into it, since tokens of runs lie there.

    Raises OSError with what is wrong with each.
    """
    wrong = []
    for place in places:
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if place.stat().st_uid != os.getuid():
                raise PermissionError(f"{place} belongs to another user")
            if not os.access(place, os.W_OK | os.X_OK):
                raise PermissionError(f"{place} is not writable")
            return place
        except OSError as error:
            wrong.append(str(error))
    raise OSError("; ".join(wrong))
