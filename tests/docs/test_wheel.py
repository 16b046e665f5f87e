"""What is packed for a release has the browser interface in it, and without one nothing is packed."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from docs.pages import ROOT
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

HOOK: Any = runpy.run_path(str(ROOT / "hatch_build.py"))["BrowserInterface"]
STATIC = "src/horarium/static"


def hook(root: Path) -> Any:
    return HOOK(str(root), {}, None, None, "", "wheel")


def put(root: Path, *names: str) -> None:
    for name in names:
        file = root / STATIC / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x", "utf-8")


def test_nothing_is_packed_without_the_browser_interface(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"the browser interface is missing.*run `make ui` first"):
        hook(tmp_path).initialize("standard", {})


def test_an_editable_install_does_not_need_it(tmp_path: Path) -> None:
    hook(tmp_path).initialize("editable", {})


def test_source_maps_are_not_packed(tmp_path: Path) -> None:
    put(tmp_path, "index.html", "assets/index.js")
    hook(tmp_path).initialize("standard", {})
    put(tmp_path, "assets/index.js.map")
    with pytest.raises(FileExistsError, match=r"not shipped: index\.js\.map"):
        hook(tmp_path).initialize("standard", {})


@pytest.mark.parametrize("builder", [WheelBuilder, SdistBuilder])
def test_what_is_packed_has_what_was_built_though_git_ignores_it(builder: Any, tmp_path: Path) -> None:
    """A tree of its own, with the project's description: what this one has built does not matter."""
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for name in ("ui/index.html", "ui/.lock", "ui/src/api/schema.d.ts", "ui/node_modules/a/index.js"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x", "utf-8")
    put(tmp_path, "index.html", "assets/index.js", "assets/index.js.gz", "licenses.txt")
    put(tmp_path, "../__init__.py")
    packed = {each.relative_path for each in builder(str(tmp_path)).recurse_included_files()}
    wanted = {f"{STATIC}/{name}" for name in ("index.html", "assets/index.js", "assets/index.js.gz", "licenses.txt")}
    assert wanted | {"src/horarium/__init__.py"} <= packed
    assert {each for each in packed if each.startswith("ui/")} <= {"ui/index.html"}  # the rest is made there again


def test_the_hook_is_the_one_that_the_build_calls() -> None:
    assert list(WheelBuilder(str(ROOT)).config.hook_config) == ["custom"]
    assert list(SdistBuilder(str(ROOT)).config.hook_config) == ["custom"]
