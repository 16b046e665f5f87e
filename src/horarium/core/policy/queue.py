"""Names and numbers of all policies, and the policies of a queue.

Names may have any case, numbers are checked by kind and bound, unknown keys are refused. An id has ASCII letters,
digits and `. _ : @ -`, begins with a letter or digit, and has at most 128 characters: ids travel in URLs, log lines
and instance ids, so they have no blank, slash or quote.

The object `queue_policy` may stand for some of these:

- Overlap: what happens to an occurrence while earlier runs of its schedule are active. A buffered run is not final, so
  it takes a place too: no occurrence overtakes a buffered one. The buffered runs of a backfill take none: the
  schedule's own work waits behind them and is not dropped.
- Catch-up: what happens to occurrences that came due while the engine was down.
- Rotation: each run that is created gets the next entry of a list in place of the schedule's inputs. The caller moves
  the index when a run is created and never on a skip, so that no entry is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from json import JSONEncoder
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar, assert_never, cast

from horarium.instant import SECOND, Instant

Name = TypeVar("Name", bound=StrEnum)

# What an INTEGER column of PostgreSQL holds.
MAX_WHOLE = 2**31 - 1
# What a BIGINT column holds.
MAX_LONG = 2**63 - 1
MAX_TEXT_LENGTH = 256

_MAX_NAME_LENGTH = 64
_CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class PolicyError(ValueError):
    """`field` is the key that is wrong, `text` what is wrong with it."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field = field
        self.text = text


def parse_name(enum_cls: type[Name], aliases: Mapping[str, Name], value: object, what: str) -> Name:
    """`BufferOne`, `bufferOne`, `BUFFER_ONE`, `buffer-one` and `bufferone` are all `buffer_one`."""
    exact = enum_cls._value2member_map_.get(value) if isinstance(value, str) else None
    if exact is not None:
        return cast("Name", exact)
    allowed = {name.value: name for name in enum_cls} | dict(aliases)
    if isinstance(value, str) and len(value) <= _MAX_NAME_LENGTH and value.isascii():
        wanted = value.lower().replace("-", "_")
        for spelling, name in allowed.items():
            if wanted in (spelling, spelling.replace("_", "")):
                return name
    raise PolicyError(what, f"must be one of {', '.join(allowed)}, not {shown(value)}")


def read_object(
    value: object,
    what: str,
    keys: Iterable[str],
    aliases: Mapping[str, str] | None = None,
    nulls: Mapping[str, object] = MappingProxyType({}),
) -> dict[str, object]:
    """The given fields by their snake_case names; an unknown key is an error.

    A null counts as not given, but for the fields in `nulls`, which say what it stands for.
    """
    if not isinstance(value, Mapping):
        raise PolicyError(what, f"must be an object, not {shown(value)}")
    names = {key: key for key in keys} | dict(aliases or {})
    found: dict[str, object] = {}
    for key, item in value.items():
        name = names.get(snake(key)) if isinstance(key, str) else None
        if name is None:
            namable = isinstance(key, str) and 1 <= len(key) <= _MAX_NAME_LENGTH and key.isprintable()
            field = key if namable else what
            raise PolicyError(field, f"unknown key {shown(key)}; allowed: {', '.join(names)}")
        if name in found:
            raise PolicyError(name, "is specified twice in different spellings")
        item = nulls.get(name) if item is None else item
        if item is not None:
            found[name] = item
    return found


def whole_number(field: str, value: object, *, least: int = 0, most: int = MAX_WHOLE) -> int:
    """A bool is an int to Python, not to us; 3.0 is refused too."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise PolicyError(field, f"must be an integer, not {shown(value)}")
    if not least <= value <= most:
        raise PolicyError(field, f"must be between {least} and {most}")
    return value


def whole_or_none(field: str, value: object, *, least: int = 0, most: int = MAX_WHOLE) -> int | None:
    return None if value is None else whole_number(field, value, least=least, most=most)


def flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise PolicyError(field, f"must be true or false, not {shown(value)}")
    return value


def flag_or_none(field: str, value: object) -> bool | None:
    return None if value is None else flag(field, value)


def text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise PolicyError(field, f"must be a string, not {shown(value)}")
    if not 1 <= len(value) <= MAX_TEXT_LENGTH:
        raise PolicyError(field, f"must have between 1 and {MAX_TEXT_LENGTH} characters")
    # Control characters and half surrogates have no place in a name, and the store cannot keep them all.
    if not value.isprintable() or value != value.strip():
        raise PolicyError(field, "must be printable and have no spaces at the beginning or end")
    return value


def texts(field: str, value: object, *, most: int = 100) -> tuple[str, ...]:
    """In the order given, without doubles."""
    if not isinstance(value, list | tuple | set | frozenset):
        raise PolicyError(field, f"must be an array of strings, not {shown(value)}")
    if len(value) > most:
        raise PolicyError(field, f"must have at most {most} entries")
    return tuple(dict.fromkeys(text(field, item) for item in value))


def shown(value: object) -> str:
    """Short and printable whatever the value is; a long integer is not even converted."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return repr(value if len(value) <= 40 else value[:37] + "...")
        case int() if value.bit_length() > 64:
            return "a very large number"
        case int() | float():
            return repr(value)
        case Mapping():
            return "an object"
        case list() | tuple():
            return "an array"
        case _:
            return f"a {type(value).__name__}"


def snake(key: str) -> str:
    return _CAMEL_HUMP.sub("_", key).lower() if len(key) <= _MAX_NAME_LENGTH else ""


MAX_ID = 128
_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:@-]{{0,{MAX_ID - 1}}}", re.ASCII)


def checked_id(field: str, value: object) -> str:
    if value is None:
        raise PolicyError(field, "is required")
    if not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise PolicyError(
            field,
            f"{shown(value)} is not a valid ID: use 1 to {MAX_ID} of A-Z a-z 0-9 . _ : @ -, a letter or digit first",
        )
    return value


# Made once: `json.dumps` would make one for every text.
_CANONICAL_ENCODER = JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: object) -> str:
    """Raises ValueError for NaN and TypeError for what JSON has no word for."""
    return _CANONICAL_ENCODER.encode(value)


def merge_patched(target: object, patch: object) -> Any:
    """A new value; neither of the two is changed."""
    if not isinstance(patch, Mapping):
        return patch
    result: dict[str, Any] = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patched(result.get(key), value)
    return result


# ── Overlap ───────────────────────────────────────────────────────────────────────────────────────────


class OverlapPolicy(StrEnum):
    SKIP = "skip"
    BUFFER_ONE = "buffer_one"
    BUFFER_ALL = "buffer_all"
    ALLOW_ALL = "allow_all"
    CANCEL_OTHER = "cancel_other"
    TERMINATE_OTHER = "terminate_other"


OVERLAP_ALIASES: Final[Mapping[str, OverlapPolicy]] = MappingProxyType(
    {
        "serial": OverlapPolicy.SKIP,
        "forbid": OverlapPolicy.SKIP,
        "queue": OverlapPolicy.BUFFER_ALL,
        "allow": OverlapPolicy.ALLOW_ALL,
        "parallel": OverlapPolicy.ALLOW_ALL,
        "replace": OverlapPolicy.CANCEL_OTHER,
    }
)


def parse_overlap_policy(value: object, field: str = "overlap_policy") -> OverlapPolicy:
    return parse_name(OverlapPolicy, OVERLAP_ALIASES, value, field)


@dataclass(frozen=True, slots=True)
class Overlap:
    """The policy and its numbers; `max_buffered` None = as many as come."""

    policy: OverlapPolicy = OverlapPolicy.SKIP
    max_concurrency: int | None = None
    max_buffered: int | None = None
    cancel_grace_seconds: int = 30

    def __post_init__(self) -> None:
        if not isinstance(self.policy, OverlapPolicy):
            raise PolicyError("overlap_policy", "must be an OverlapPolicy")
        whole_or_none("max_concurrency", self.max_concurrency, least=1)
        whole_or_none("max_buffered", self.max_buffered)
        whole_number("cancel_grace_seconds", self.cancel_grace_seconds)

    @property
    def capacity(self) -> int | None:
        """Number of runs that may be busy at once; None = any number."""
        if self.max_concurrency is not None:
            return self.max_concurrency
        return None if self.policy is OverlapPolicy.ALLOW_ALL else 1


_OVERLAP_KEYS = ("overlap_policy", *(each.name for each in fields(Overlap)[1:]))


def parse_overlap(value: object) -> Overlap:
    given: dict[str, Any] = read_object(value, "overlap", _OVERLAP_KEYS)
    policy = parse_overlap_policy(given.pop("overlap_policy")) if "overlap_policy" in given else OverlapPolicy.SKIP
    return Overlap(policy, **given)


@dataclass(frozen=True, slots=True)
class Start:
    """Fire now; with `terminate_active` the active runs become `terminated` in the same transaction."""

    terminate_active: bool = False


@dataclass(frozen=True, slots=True)
class Buffer:
    """Hold; with `cancel_active` the active runs are asked to stop."""

    cancel_active: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """Skip, for this reason: `overlap_policy_skip`, `buffer_full` or `max_concurrent_reached`."""

    reason: str


OverlapOutcome: TypeAlias = Start | Buffer | Refuse
_START_NOW: Final = Start()


def decide_overlap(
    overlap: Overlap, *, active: int, held: int, backfilled: int = 0, caught_up: bool = False
) -> OverlapOutcome:
    """`active` are root runs that are neither final nor held, `held` those that are; `backfilled` of them fill in."""
    whole_number("active", active)
    whole_number("held", held)
    whole_number("backfilled", backfilled)
    policy, capacity = overlap.policy, overlap.capacity
    own = max(0, held - backfilled)
    if caught_up and policy is OverlapPolicy.SKIP:
        policy = OverlapPolicy.BUFFER_ALL  # a backlog is not skipped against itself
    at_capacity = capacity is not None and active >= capacity
    occupied = capacity is not None and active + own >= capacity
    must_wait = at_capacity or held > 0
    match policy:
        case OverlapPolicy.SKIP:
            if backfilled:
                return _buffer(True, own, most=overlap.max_buffered)
            return Refuse("overlap_policy_skip") if occupied else _START_NOW
        case OverlapPolicy.BUFFER_ONE:
            return _buffer(must_wait, own, most=1)
        case OverlapPolicy.BUFFER_ALL:
            return _buffer(must_wait, own, most=overlap.max_buffered)
        case OverlapPolicy.ALLOW_ALL:
            if not occupied:
                return _START_NOW
            return _buffer(True, own, most=overlap.max_buffered) if backfilled else Refuse("max_concurrent_reached")
        case OverlapPolicy.CANCEL_OTHER:
            return Buffer(cancel_active=True) if must_wait else _START_NOW
        case OverlapPolicy.TERMINATE_OTHER:
            # Only active runs can be terminated; held ones keep their turn.
            return Start(terminate_active=at_capacity)
        case _:
            assert_never(policy)


def _buffer(must_wait: bool, held: int, *, most: int | None) -> OverlapOutcome:
    if not must_wait:
        return _START_NOW
    return Refuse("buffer_full") if most is not None and held >= most else Buffer()


# ── Catch-up ──────────────────────────────────────────────────────────────────────────────────────────


class CatchupPolicy(StrEnum):
    FIRE_ONCE = "fire_once"
    SKIP = "skip"
    FIRE_ALL = "fire_all"
    SPREAD = "spread"


CATCHUP_ALIASES: Final[Mapping[str, CatchupPolicy]] = MappingProxyType(
    {
        "run_once": CatchupPolicy.FIRE_ONCE,
        "none": CatchupPolicy.SKIP,
        "fire_immediately": CatchupPolicy.FIRE_ALL,
        "backfill": CatchupPolicy.FIRE_ALL,
    }
)

# A spread is planned in one transaction, whatever the bound of a tick: it must stay small.
MAX_SPREAD = 1_000


def parse_catchup_policy(value: object, field: str = "catchup_policy") -> CatchupPolicy:
    return parse_name(CatchupPolicy, CATCHUP_ALIASES, value, field)


@dataclass(frozen=True, slots=True)
class Catchup:
    """The policy and its numbers; `catchup_window_seconds` None = however old."""

    policy: CatchupPolicy = CatchupPolicy.FIRE_ONCE
    max_catchup: int = 100
    catchup_window_seconds: int | None = None
    catchup_spread_seconds: int = 60
    misfire_grace_seconds: int = 60

    def __post_init__(self) -> None:
        if not isinstance(self.policy, CatchupPolicy):
            raise PolicyError("catchup_policy", "must be a CatchupPolicy")
        whole_number("max_catchup", self.max_catchup)
        whole_or_none("catchup_window_seconds", self.catchup_window_seconds)
        whole_number("catchup_spread_seconds", self.catchup_spread_seconds)
        whole_number("misfire_grace_seconds", self.misfire_grace_seconds)
        if self.policy is CatchupPolicy.SPREAD and self.max_catchup > MAX_SPREAD:
            raise PolicyError("max_catchup", f"must be at most {MAX_SPREAD} for the policy spread")


_CATCHUP_KEYS = ("catchup_policy", *(each.name for each in fields(Catchup)[1:]))
_CATCHUP_KEY_ALIASES = {"max_backfill": "max_catchup", "on_missed": "catchup_policy"}


def parse_catchup(value: object) -> Catchup:
    given: dict[str, Any] = read_object(value, "catchup", _CATCHUP_KEYS, _CATCHUP_KEY_ALIASES)
    policy = parse_catchup_policy(given.pop("catchup_policy")) if "catchup_policy" in given else CatchupPolicy.FIRE_ONCE
    return Catchup(policy, **given)


def spread_due(position: int, count: int, *, now: Instant, spread_seconds: int) -> Instant:
    """When the run at `position` of `count` is due: the first at `now`, the last at the end of the spread.

    Steps are equal but for the microsecond lost to division; a single run is due at once.
    """
    if not 0 <= position < count:
        raise ValueError(f"position {position} is not among {count} runs")
    if count == 1:
        return now
    return now + spread_seconds * SECOND * position // (count - 1)


# ── The queue_policy object ───────────────────────────────────────────────────────────────────────────


# `mode` takes every name of an overlap policy; these two are the ones it is documented with.
QUEUE_MODE_ALIASES: Final[Mapping[str, OverlapPolicy]] = MappingProxyType(
    {name: OVERLAP_ALIASES[name] for name in ("parallel", "serial")}
)

# Wide enough to put anything before anything; it orders the runs of one namespace only.
MIN_PRIORITY, MAX_PRIORITY = -100, 100

DEFAULT_OVERLAP: Final = OverlapPolicy.ALLOW_ALL
DEFAULT_CATCHUP: Final = CatchupPolicy.SKIP
"""`mode` parallel and `onMissed` skip: the defaults of a document with the object or with `p_…` names."""

_QUEUE_KEYS = ("mode", "max_concurrency", "priority", "on_missed", "max_backfill")
QUEUE_KEY_ALIASES = {
    "max_concurrent": "max_concurrency",
    "overlap_policy": "mode",
    "catchup_policy": "on_missed",
    "max_catchup": "max_backfill",
}


QUEUE_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {"overlap_policy": "mode", "catchup_policy": "on_missed", "max_catchup": "max_backfill"}
)
"""The names of the object for the fields of the value, where they differ."""


def parse_queue_mode(value: object, field: str = "mode") -> OverlapPolicy:
    return parse_overlap_policy(value, field)


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """Fields of the given object; None = not given, so the schedule's own field or default applies."""

    overlap_policy: OverlapPolicy | None = None
    max_concurrency: int | None = None
    priority: int | None = None
    catchup_policy: CatchupPolicy | None = None
    max_catchup: int | None = None

    def __post_init__(self) -> None:
        if self.overlap_policy is not None and not isinstance(self.overlap_policy, OverlapPolicy):
            raise PolicyError("mode", "must be an OverlapPolicy")
        if self.catchup_policy is not None and not isinstance(self.catchup_policy, CatchupPolicy):
            raise PolicyError("on_missed", "must be a CatchupPolicy")
        whole_or_none("max_concurrency", self.max_concurrency, least=1)
        whole_or_none("priority", self.priority, least=MIN_PRIORITY, most=MAX_PRIORITY)
        whole_or_none("max_backfill", self.max_catchup)


@dataclass(frozen=True, slots=True)
class OwnQueue:
    """The fields of a schedule that a `queue_policy` stands for."""

    overlap: Overlap
    catchup: Catchup
    priority: int = 0

    def under(self, assignment: QueuePolicy | None) -> OwnQueue:
        """With the overlap and priority of an assignment where the schedule has defaults."""
        if assignment is None:
            return self
        overlap, priority = self.overlap, self.priority
        if overlap == _USUAL_OVERLAP:
            overlap = replace(
                overlap,
                policy=assignment.overlap_policy or overlap.policy,
                max_concurrency=assignment.max_concurrency or overlap.max_concurrency,
            )
        if assignment.priority is not None and priority == 0:
            priority = assignment.priority
        return replace(self, overlap=overlap, priority=priority)

    def document(self) -> dict[str, object]:
        """Every name of the object; null is no limit, or a number that the policy does not use."""
        capped = self.catchup.policy in (CatchupPolicy.FIRE_ALL, CatchupPolicy.SPREAD)
        values = QueuePolicy(
            self.overlap.policy,
            self.overlap.max_concurrency,
            self.priority,
            self.catchup.policy,
            self.catchup.max_catchup if capped else None,
        )
        return {QUEUE_NAMES.get(each.name, each.name): getattr(values, each.name) for each in fields(QueuePolicy)}


_USUAL_OVERLAP: Final = Overlap()
USUAL_QUEUE: Final = OwnQueue(_USUAL_OVERLAP, Catchup())


def queue_document(policy: QueuePolicy) -> dict[str, object]:
    """Return the policy as the object that documents use."""
    given = {each.name: getattr(policy, each.name) for each in fields(policy)}
    return {QUEUE_NAMES.get(name, name): value for name, value in given.items() if value is not None}


def parse_queue_policy(value: object) -> QueuePolicy:
    given: dict[str, Any] = read_object(value, "queue_policy", _QUEUE_KEYS, QUEUE_KEY_ALIASES)
    return QueuePolicy(
        overlap_policy=parse_queue_mode(given["mode"]) if "mode" in given else None,
        max_concurrency=given.get("max_concurrency"),
        priority=given.get("priority"),
        catchup_policy=parse_catchup_policy(given["on_missed"], "on_missed") if "on_missed" in given else None,
        max_catchup=given.get("max_backfill"),
    )


# ── Rotation of inputs ────────────────────────────────────────────────────────────────────────────────


Inputs = TypeVar("Inputs")

MAX_ROTATION = 1_000


def parse_rotation(value: object, field: str = "inputs_rotation") -> tuple[Mapping[str, object], ...]:
    """A list of input objects; null and an empty list are no rotation."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise PolicyError(field, f"must be an array of objects, not {shown(value)}")
    if len(value) > MAX_ROTATION:
        raise PolicyError(field, f"must have at most {MAX_ROTATION} entries")
    for position, entry in enumerate(value):
        if not isinstance(entry, Mapping):
            raise PolicyError(f"{field}.{position}", f"must be an object, not {shown(entry)}")
    return tuple(value)


def pick_entry(rotation_length: int, index: int) -> int | None:
    """The position to use, or None where there is no rotation."""
    whole_number("rotation_length", rotation_length)
    if index < 0:
        raise ValueError(f"the rotation index must not be negative: {index}")
    return index % rotation_length if rotation_length else None


def inputs_for(inputs: Inputs, rotation: Sequence[Inputs], index: int) -> Inputs:
    position = pick_entry(len(rotation), index)
    return inputs if position is None else rotation[position]
