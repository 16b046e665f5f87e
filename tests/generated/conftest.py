"""A real server on loopback, its description, and the clients that others' tools make of it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from environments import GENERATED, RegistryUnreachable
from world import serving

from horarium.testing import Accepted, service
from horarium.testing.service import TOKEN

DRIVER = Path(__file__).parent / "driver.py"


@dataclass(frozen=True)
class Generated:
    """A folder with the description; each test makes of it only what it uses, since that takes most of its time."""

    python: Path
    folder: Path
    url: str

    def make_package(self) -> None:
        """The package `ours` of openapi-python-client."""
        self._run("openapi_python_client", "generate", "--path", "openapi.json", "--output-path", "ours",
                  "--meta", "none", "--fail-on-warning")  # fmt: skip

    def make_models(self) -> None:
        """The module `models.py` of datamodel-codegen."""
        self._run("datamodel_code_generator", "--input", "openapi.json", "--input-file-type", "openapi",
                  "--output-model-type", "pydantic_v2.BaseModel", "--disable-timestamp", "--formatters", "builtin",
                  "--output", "models.py")  # fmt: skip

    def drive(self, *words: str) -> Any:
        """What the driver prints, run by the Python that has what the clients import."""
        done = subprocess.run(
            [str(self.python), str(DRIVER), *words, self.url, TOKEN],
            cwd=self.folder, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def _run(self, *arguments: str) -> None:
        # The formatter that they call is there.
        path = f"{self.python.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        done = subprocess.run(
            [str(self.python), "-m", *arguments], env={**os.environ, "PATH": path}, cwd=self.folder,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def generators() -> Path:
    try:
        return GENERATED.ready()
    except RegistryUnreachable as away:
        pytest.skip(str(away))


@pytest.fixture
def generated(generators: Path, tmp_path: Path) -> Iterator[Generated]:
    with service(at="2026-03-01T00:00:00Z", answer=Accepted()) as running, serving(running.parts) as url:
        (tmp_path / "openapi.json").write_bytes(httpx.get(f"{url}/openapi.json").content)
        yield Generated(generators, tmp_path, url)
