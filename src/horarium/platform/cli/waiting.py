"""Polling with backoff until runs end, also through a restart of the server, and lists that print changed rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypeVar

import typer

from horarium.core.document.states import RunState, is_final
from horarium.platform.cli.streams import Format, refuse, show_columns, show_json, talk
from horarium.platform.cli.times import read_span
from horarium.platform.clock import SystemClock

if TYPE_CHECKING:
    from horarium.client.client import Client
    from horarium.features.runs.model import Run
    from horarium.platform.wire import Answer


T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 2.0
_AWAY_PAUSE = 1.0
_AWAY_SECONDS = 120.0

Timeout = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="SPAN", show_default="none", help="Maximum time to wait, such as 30s, 10m or PT1H."
    ),
]


class HasState(Protocol):
    @property
    def run_id(self) -> str: ...
    @property
    def state(self) -> RunState: ...


@dataclass(slots=True)
class PollingLimit:
    """The time limit and the polling interval of a wait."""

    seconds: float | None = None
    sleep: Callable[[float], None] = field(default_factory=lambda: pause)
    monotonic: Callable[[], float] = field(default_factory=lambda: SystemClock().monotonic)
    _began: float = field(init=False)
    _pause: float = field(default=_FIRST_PAUSE, init=False)
    _away_since: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._began = self.monotonic()

    def rest(self) -> bool:
        """Sleep before the next request; return False after the timeout."""
        if not self._sleeps(self._pause):
            return False
        self._pause = min(self._pause * 1.5, _LONGEST_PAUSE)
        return True

    def _sleeps(self, seconds: float) -> bool:
        """Sleep, not past the timeout; return False after it."""
        left = None if self.seconds is None else self._began + self.seconds - self.monotonic()
        if left is not None and left <= 0:
            return False
        self.sleep(seconds if left is None else min(seconds, left))
        return True

    def answered(self) -> None:
        self._away_since = None

    def bears(self, told: str) -> bool:
        """Sleep before a retry and report the first one; return False where the server stays unreachable."""
        now = self.monotonic()
        if self._away_since is None:
            self._away_since = now
            talk(f"{told}; retrying for {_AWAY_SECONDS:g} s")
        elif now - self._away_since > _AWAY_SECONDS:
            return False
        return self._sleeps(_AWAY_PAUSE)


def pause(seconds: float) -> None:
    """Sleep; replaced in tests."""
    time.sleep(seconds)


def span_of(flag: str, text: str | None) -> float | None:
    return None if text is None else read_span(text, flag=flag)


def steadily(ask: Callable[[], T], patience: PollingLimit) -> T:
    """Return the answer, with retries while the server is unreachable."""
    from horarium.platform.client.errors import ServerUnavailable

    while True:
        try:
            answer = ask()
        except ServerUnavailable as away:
            if not patience.bears(away.message):
                raise
        else:
            patience.answered()
            return answer


def ended_runs(client: Client, run_ids: Sequence[str], patience: PollingLimit) -> Iterator[Run]:
    """Yield each run when it ends; stop after the timeout."""
    waiting = list(dict.fromkeys(run_ids))
    while waiting:
        for run_id in list(waiting):
            run = steadily(lambda run_id=run_id: client.get_run(run_id), patience)  # type: ignore[misc]  # bound at once
            if is_final(run.state):
                waiting.remove(run_id)
                yield run
        if waiting and not patience.rest():
            return


def all_succeeded(run_ids: Sequence[str], ended: Mapping[str, HasState]) -> bool:
    """Return whether all runs succeeded."""
    return all(run_id in ended and ended[run_id].state is RunState.SUCCEEDED for run_id in run_ids)


@contextmanager
def until_interrupted() -> Iterator[None]:
    """End normally on Ctrl-C."""
    with suppress(KeyboardInterrupt):
        yield


A = TypeVar("A", bound="Answer")

_PAUSE = 2.0


@dataclass(slots=True)
class Growing(Generic[A]):
    """A table or JSON lines that rows are appended to; columns keep their positions."""

    output: Format
    columns: Sequence[str]
    row: Callable[[A], Sequence[Any]]
    _widths: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.output in (Format.JSON, Format.YAML):
            refuse(f"-o {self.output.value} does not support an endless list; use -o jsonl")

    def show(self, items: Iterable[A]) -> None:
        found = list(items)
        if self.output is Format.JSONL:
            for item in found:
                show_json(dict(item.raw))
        elif found:
            rows = [self.row(item) for item in found]
            self._widths = show_columns(self.columns, rows, widths=self._widths)


def fresh(seen: dict[Hashable, Hashable], rows: Iterable[tuple[Hashable, Hashable, A]]) -> list[A]:
    """Return the rows (name, state, row) that are new or changed, and set `seen` to the listed rows."""
    listed = list(rows)
    news = [item for name, look, item in listed if seen.get(name) != look]
    seen.clear()
    seen.update((name, look) for name, look, _ in listed)
    return news


def watch(
    ask: Callable[[], Sequence[A]],
    look: Callable[[A], tuple[Hashable, Hashable]],
    growing: Growing[A],
    patience: PollingLimit,
) -> None:
    """Poll until Ctrl-C and print the newest row last; the list has it first."""
    seen: dict[Hashable, Hashable] = {}
    with until_interrupted():
        while True:
            rows = steadily(ask, patience)
            growing.show(reversed(fresh(seen, [(*look(row), row) for row in rows])))
            patience.sleep(_PAUSE)
