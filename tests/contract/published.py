"""The published client, as the tests see it: calls that return plain values and raise `ClientError`."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

DRIVER = Path(__file__).with_name("driver.py")


class ClientError(Exception):
    """An exception of the published client; `type` is the name of its class."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(f"{told['type']}: {told['text']}")
        self.type: str = told["type"]
        self.told = told

    def __getattr__(self, name: str) -> Any:
        try:
            return self.told[name]
        except KeyError:
            raise AttributeError(name) from None


class Process:
    """The client's own interpreter; it lives as long as the tests do."""

    def __init__(self, python: Path) -> None:
        self._process = subprocess.Popen(
            [str(python), str(DRIVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise ClientError(answer["error"])
        return answer["value"]

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@dataclass(frozen=True)
class Published:
    """`published.describe_schedule(schedule_id=…)`, with the options of one client."""

    process: Process
    options: dict[str, Any] = field(default_factory=dict)
    sync: bool = False
    handle: str | None = None
    fresh: bool = False

    def with_options(self, **changes: Any) -> Published:
        return replace(self, options={**self.options, **changes})

    def of(self, schedule_id: str) -> Published:
        """The same calls on a handle of this schedule."""
        return replace(self, handle=schedule_id)

    def __getattr__(self, call: str) -> Any:
        if call.startswith("_"):
            raise AttributeError(call)

        def ask(**args: Any) -> Any:
            return self.process.ask(
                {
                    "client": self.options,
                    "sync": self.sync,
                    "handle": self.handle,
                    "fresh": self.fresh,
                    "call": call,
                    "args": args,
                }
            )

        return ask
