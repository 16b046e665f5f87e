"""Build hook that rejects a release without the browser interface, which `make ui` builds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BrowserInterface(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """`version` is how it is built: an editable install serves what is built later."""
        if version == "editable":
            return
        static = Path(self.root) / "src" / "horarium" / "static"
        if not (static / "index.html").exists():
            raise FileNotFoundError(
                "the browser interface is missing: src/horarium/static/index.html is not there; run `make ui` first"
            )
        if maps := sorted(each.name for each in static.rglob("*.map")):
            raise FileExistsError(f"source maps are not shipped: {', '.join(maps)}; run `make ui` again")
