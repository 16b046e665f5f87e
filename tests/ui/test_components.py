"""The sources of the browser interface pass their own tests, have one layout, and ESLint finds nothing in them."""

from __future__ import annotations

import subprocess

import pytest
from app_build import UI, digest, is_made, mark, sources
from node_here import Node

CHECKS = {
    "vitest": ("node_modules/vitest/vitest.mjs", "run", "--reporter=default"),
    "prettier": ("node_modules/prettier/bin/prettier.cjs", "--check", "."),
    "eslint": ("node_modules/eslint/bin/eslint.js", "."),
}


@pytest.mark.parametrize("name", CHECKS)
def test_the_sources_pass_a_check(node: Node, name: str) -> None:
    """A check that passed is repeated when a source, a package or the check has changed."""
    step = f"{name}-passed"
    from_what = digest(sources(UI, without=("node_modules", ".lock")), str(node.program), *CHECKS[name])
    if is_made(step, from_what):
        return
    done = subprocess.run(
        [str(node.program), *CHECKS[name]],
        cwd=UI,
        env={**node.environment(), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    advice = "run `npm run format` in ui/\n" if name == "prettier" else ""
    assert done.returncode == 0, f"{advice}{done.stdout}\n{done.stderr}"
    mark(step, from_what)
