"""The sources of the browser interface pass their own tests, have one layout, and ESLint finds nothing in them."""

from __future__ import annotations

import subprocess

from app_build import MADE, UI
from node_here import Node

# Files that were looked at already, by what is in them.
_KEPT = ("--cache-strategy", "content", "--cache-location", str(MADE / "prettier"))


def test_the_components_pass_their_own_tests(node: Node) -> None:
    done = subprocess.run(
        [str(node.program), "node_modules/vitest/vitest.mjs", "run", "--reporter=default"],
        cwd=UI,
        env={**node.environment(), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_the_sources_are_laid_out_by_one_rule(node: Node) -> None:
    done = subprocess.run(
        [str(node.program), "node_modules/prettier/bin/prettier.cjs", "--check", "--cache", *_KEPT, "."],
        cwd=UI,
        env=node.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"run `npm run format` in ui/\n{done.stdout}\n{done.stderr}"


def test_the_sources_have_no_finding_of_eslint(node: Node) -> None:
    done = subprocess.run(
        [str(node.program), "node_modules/eslint/bin/eslint.js", "."],
        cwd=UI,
        env=node.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
