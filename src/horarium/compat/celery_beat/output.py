"""The output of a Celery import: entries, remarks and differing fires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import typer

from horarium.compat.celery_beat.differences import BeatComparison, BeatDifference, compare
from horarium.compat.celery_beat.entries import CeleryApp, Weight
from horarium.compat.celery_beat.translation import Translation
from horarium.core.recurrence.zone import Zone, load_zone
from horarium.instant import SECOND, to_rfc3339
from horarium.platform.cli.streams import NOTHING, local_time, printable, show_columns, talk

# An interval has the same frequency, but its times depend on the start of beat.
_SAME, _DIFFERS, _SHIFTED = "same", "differs", "shifted"
_MAX_NAMED = 3
_DAYS = 86_400


@dataclass(frozen=True, slots=True)
class Viewed:
    """An entry, its translation and its comparison."""

    translation: Translation
    comparison: BeatComparison | None

    @property
    def verdict(self) -> str:
        if self.translation.document is None:
            return Weight.REFUSED.value
        if self.translation.weight is Weight.APPROXIMATE:
            return Weight.APPROXIMATE.value
        if not self.translation.has_grid:
            return _SHIFTED
        return _DIFFERS if self.comparison is not None and self.comparison.count else _SAME


def viewed(translations: Sequence[Translation]) -> tuple[Viewed, ...]:
    return tuple(Viewed(each, compare(each)) for each in translations)


def is_the_same(entries: Sequence[Viewed]) -> bool:
    return all(each.verdict == _SAME for each in entries)


# ── JSON ──────────────────────────────────────────────────────────────────────────────────


def view_document(app: CeleryApp, entries: Sequence[Viewed], bundle: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "app": app.name,
        "celery": app.version,
        "compared_from": to_rfc3339(app.now),
        "entries": [_entry_document(each) for each in entries],
        "bundle": dict(bundle),
    }


def _entry_document(entry: Viewed) -> dict[str, Any]:
    translation, found = entry.translation, entry.comparison
    return {
        "name": translation.entry.name,
        "schedule_id": translation.schedule_id,
        "verdict": entry.verdict,
        "remarks": [
            {"weight": each.weight.value, "about": each.about, "text": each.text} for each in translation.remarks
        ],
        "compared": None
        if found is None
        else {
            "spans": [{"after": _time(low), "until": _time(high)} for low, high in found.spans],
            "fires_before": found.fires_before,
            "fires_after": found.fires_after,
            "differing": found.count,
        },
        "differences": [_difference_document(each) for each in (found.differences if found else ())],
    }


def _difference_document(difference: BeatDifference) -> dict[str, Any]:
    return {
        "change": difference.change.value,
        "before": _time(difference.before),
        "after": _time(difference.after),
        "why": difference.why,
    }


def _time(moment: int | None) -> str | None:
    return None if moment is None else to_rfc3339(moment * SECOND)


# ── text ──────────────────────────────────────────────────────────────────────────────────────


def show_view(entries: Sequence[Viewed], lines: int) -> None:
    show_columns(
        ("Entry", "Schedule", "Timing", "Time Zone", "Fires Compared", "Verdict"),
        [
            (each.translation.entry.name, each.translation.schedule_id, *_when(each), _compared(each), each.verdict)
            for each in entries
        ],
    )
    for text in ("", *_remarks(entries)):
        typer.echo(text)
    rows = [row for each in entries for row in _difference_rows(each)]
    if rows:
        typer.echo()
        show_columns(("Entry", "Change", "Fires", "Celery Beat", "Horarium", "Cause"), rows[:lines])
    more = sum(each.comparison.count for each in entries if each.comparison) - sum(int(row[2]) for row in rows[:lines])
    if more > 0:
        talk(f"{more} more fires differ; increase --lines, or use -o json (up to 1,000 per entry)")


def _when(entry: Viewed) -> tuple[str | None, str | None]:
    document = entry.translation.document
    if document is None:
        return None, entry.translation.entry.timezone
    spec = document["spec"]
    intervals = [f"@every {each['every']}" for each in spec.get("intervals", ())]
    said = [*spec.get("cron_expressions", ()), *intervals, *spec.get("at", ())]
    return ", ".join([*said, *document.get("calendars", ())]), spec["timezone"]


def _compared(entry: Viewed) -> str | None:
    """Return the number of compared fires and the compared time."""
    found = entry.comparison
    if found is None:
        return None
    low, high = found.spans[0]
    around = f" and {len(found.spans) - 1} DST changes" if len(found.spans) > 1 else ""
    return f"{found.fires_after} in {round((high - low) / _DAYS)} days{around}"


def _remarks(entries: Sequence[Viewed]) -> Iterator[str]:
    """Yield each remark once, with its entries."""
    named: dict[tuple[Weight, str, str], list[str]] = {}
    for entry in entries:
        for remark in entry.translation.remarks:
            names = named.setdefault((remark.weight, remark.about, remark.text), [])
            names.append(entry.translation.entry.name)
    for weight in (Weight.REFUSED, Weight.APPROXIMATE, Weight.NOTE):
        for (heavy, about, text), names in named.items():
            if heavy is weight:
                yield printable(" ".join(f"{weight}: {_names(names, len(entries))}: {about}: {text}".split()))


def _names(names: list[str], everybody: int) -> str:
    if len(names) == everybody > 1:
        return "all"
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more


def _difference_rows(entry: Viewed) -> Iterator[tuple[str, ...]]:
    """Yield rows; consecutive fires with the same difference share a row."""
    translation, found = entry.translation, entry.comparison
    if found is None or translation.document is None:
        return
    zone = load_zone(translation.document["spec"]["timezone"])
    for (change, why), group in groupby(found.differences, key=lambda each: (each.change, each.why)):
        rows = list(group)
        before = _stretch(zone, [each.before for each in rows if each.before is not None])
        after = _stretch(zone, [each.after for each in rows if each.after is not None])
        yield translation.entry.name, change.value, str(len(rows)), before, after, why


def _stretch(zone: Zone, moments: list[int]) -> str:
    ends = [local_time(moment * SECOND, zone) for moment in moments]
    if not ends or len(ends) == 1:
        return ends[0] if ends else NOTHING
    return f"{ends[0]} to {ends[-1]}"
