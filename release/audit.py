"""Whether an advisory is known against a package of the image: `make audit` prints what pip-audit found.

pip-audit asks PyPI and then OSV. A source that knows none of our packages was not reached, whatever it answered: so
that is said plainly and is neither a pass nor a finding.

Exit codes: 0 nothing known, 1 something known, 3 nobody could be asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parent / "runtime.txt"
SOURCES = ("pypi", "osv")
_SECONDS = "30"

CLEAN, FOUND, NOT_ASKED = 0, 1, 3


def asked(source: str) -> list[dict[str, Any]]:
    """What a source says of each package; nothing where it could not be asked."""
    command = ["pip-audit", "--requirement", str(LOCK), "--require-hashes", "--disable-pip", "--format", "json"]
    program = Path(sys.executable).parent / command[0]
    done = subprocess.run(
        [program, *command[1:], "--vulnerability-service", source, "--timeout", _SECONDS],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return []
    return found


def verdict(answers: list[dict[str, Any]]) -> tuple[int, list[str]]:
    """The exit code, and what to say."""
    looked_at = [each for each in answers if "vulns" in each]
    if not looked_at:
        return NOT_ASKED, ["no advisory source could be asked: whether an advisory is known is open"]
    lines = [
        f"{each['name']} {each['version']}: {flaw['id']}, mended in {', '.join(flaw['fix_versions']) or 'no version'}"
        for each in looked_at
        for flaw in each["vulns"]
    ]
    not_known = [each["name"] for each in answers if "vulns" not in each]
    if not_known:
        lines.append(f"not known to the source: {', '.join(not_known)}")
    known = any(each["vulns"] for each in looked_at)
    return (FOUND if known else CLEAN), [*lines, f"{len(looked_at)} packages were looked at"]


def main() -> int:
    code, lines = NOT_ASKED, [""]
    for source in SOURCES:
        code, lines = verdict(asked(source))
        if code != NOT_ASKED:
            print(f"asked {source}:")
            break
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
