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
    """`folder` has the package `ours` of openapi-python-client and the module `models.py` of datamodel-codegen."""

    python: Path
    folder: Path
    url: str

    def drive(self, *words: str) -> Any:
        """What the driver prints, run by the Python that has what the clients import."""
        done = subprocess.run(
            [str(self.python), str(DRIVER), *words, self.url, TOKEN],
            cwd=self.folder, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="session")
def generators() -> Path:
    try:
        return GENERATED.ready()
    except RegistryUnreachable as away:
        pytest.skip(str(away))


@pytest.fixture(scope="session")
def generated(generators: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generated]:
    folder = tmp_path_factory.mktemp("generated")
    description = folder / "openapi.json"
    with service(at="2026-03-01T00:00:00Z", answer=Accepted()) as running, serving(running.parts) as url:
        description.write_bytes(httpx.get(f"{url}/openapi.json").content)
        _run(generators, folder, "openapi_python_client", "generate", "--path", str(description),
             "--output-path", str(folder / "ours"), "--meta", "none", "--fail-on-warning")  # fmt: skip
        _run(generators, folder, "datamodel_code_generator", "--input", str(description),
             "--input-file-type", "openapi", "--output-model-type", "pydantic_v2.BaseModel",
             "--disable-timestamp", "--output", str(folder / "models.py"))  # fmt: skip
        yield Generated(generators, folder, url)


def _run(python: Path, folder: Path, *arguments: str) -> None:
    path = f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}"  # the formatter that they call is there
    done = subprocess.run(
        [str(python), "-m", *arguments], env={**os.environ, "PATH": path}, cwd=folder,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
