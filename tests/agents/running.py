"""Real agents for tests: three of the published SDK for all workers of a session, and more for whoever kills them.

They are an agent of 1.x as it comes (`plain`), one that speaks 0.3 as well (`compat`), and one of 0.3 (`old`). They
end when the session does, by themselves: one whose execution hangs does not obey a polite signal.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from environments import AGENTS, AGENTS03, Environment, RegistryUnreachable

HERE = Path(__file__).parent
_PATIENCE = 60


@dataclass(frozen=True)
class Model:
    """What an agent is made of. `recovers`: it can be asked which tasks it has."""

    environment: Environment
    script: str
    arguments: tuple[str, ...] = ()
    dialect: str = "1.0"

    @property
    def recovers(self) -> bool:
        return self.dialect == "1.0"


PLAIN = Model(AGENTS, "agent_v1.py")
COMPAT = Model(AGENTS, "agent_v1.py", ("--compat",))
OLD = Model(AGENTS03, "agent_v03.py", dialect="0.3")
MODELS = {"plain": PLAIN, "compat": COMPAT, "old": OLD}


@dataclass(frozen=True)
class Agent:
    """An agent that runs somewhere, and its books."""

    name: str
    url: str

    @property
    def model(self) -> Model:
        return MODELS[self.name]

    def executions(self) -> dict[str, Any]:
        """`executions` by message id, what was `heard`, and the tasks that were `cancelled`."""
        return self._ask("GET", "executions")

    def requests(self) -> list[dict[str, str]]:
        return self._ask("GET", "requests")

    def release(self, name: str) -> None:
        self._ask("POST", f"release/{name}")

    def times(self, prompt: str) -> int:
        """How often a prompt with exactly this text was executed."""
        told = self.executions()
        return sum(told["executions"][key] for key, heard in told["heard"].items() if heard["text"] == prompt)

    def heard(self, prompt: str) -> dict[str, Any]:
        """The only message with exactly this text."""
        [found] = [each for each in self.executions()["heard"].values() if each["text"] == prompt]
        return found

    def _ask(self, method: str, path: str) -> Any:
        with httpx.Client(trust_env=False, timeout=_PATIENCE) as http:
            answer = http.request(method, f"{self.url}{path}")
        answer.raise_for_status()
        return answer.json()


@dataclass
class Process:
    """An agent of one's own, which may be killed and started again on the same port."""

    name: str
    log: Path
    more: tuple[str, ...] = ()
    owner: int = field(default_factory=os.getpid)
    port: int = 0

    def start(self) -> Self:
        model = MODELS[self.name]
        command = [str(_python(model.environment)), str(HERE / model.script), *model.arguments, *self.more]
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [*command, "--owner", str(self.owner), "--port", str(self.port)],
                env={**os.environ, "PYTHONPATH": str(HERE.parent)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        return self

    def ready(self) -> Agent:
        """Starting takes a moment, so several are started before the first is waited for."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("ready at "), f"the agent did not start: {self.log.read_text()}"
        url = line.removeprefix("ready at ").strip()
        self.port = httpx.URL(url).port or 0
        return Agent(self.name, url)

    def kill(self) -> None:
        self._process.kill()
        self.left()

    def left(self) -> None:
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _python(environment: Environment) -> Path:
    try:
        return environment.ready()
    except RegistryUnreachable as away:
        pytest.skip(str(away))  # nobody can make agents without a registry, and the neighbours say so too


@contextmanager
def running(name: str, folder: Path, *more: str) -> Iterator[tuple[Process, Agent]]:
    process = Process(name, folder / f"agent-{name}.log", more).start()
    try:
        yield process, process.ready()
    finally:
        process.kill()


@pytest.fixture(scope="session")
def agents(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Agent]:
    """By name; whichever worker needs them first starts them for all."""
    is_worker = hasattr(request.config, "workerinput")
    base = tmp_path_factory.getbasetemp()
    home, owner = (base.parent, os.getppid()) if is_worker else (base, os.getpid())
    with (home / "agents.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        addresses = home / "agents.json"
        if not addresses.exists():
            detached = ("--detached",)  # they are for the other workers too, which may end later than this one
            made = [Process(name, home / f"agent-{name}.log", detached, owner).start() for name in MODELS]
            addresses.write_text(json.dumps({each.name: each.ready().url for each in made}))
            for each in made:
                each.left()
        return {name: Agent(name, url) for name, url in json.loads(addresses.read_text()).items()}


@pytest.fixture(params=MODELS)
def agent(request: pytest.FixtureRequest, agents: dict[str, Agent]) -> Agent:
    """Each of the three in turn; parametrise it to meet one alone."""
    return agents[request.param]
