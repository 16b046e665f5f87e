"""The route of bundles: schedules and their dependencies, applied together."""

from __future__ import annotations

from horarium.features.bundles.document import read_bundle
from horarium.features.bundles.kinds import KINDS
from horarium.features.bundles.model import Applied, ApplyBody, BundleChange, FieldChange
from horarium.features.bundles.service import apply_bundle
from horarium.features.bundles.steps import Step
from horarium.platform.bodies import read_body
from horarium.platform.http import examples
from horarium.platform.http.audited import Audited
from horarium.platform.http.requests import CallerOf, Confirm, Document, ResourcesOf
from horarium.platform.http.responses import Reply
from horarium.platform.http.routing import WRITE, Routes

routes = Routes("/api/apply", tag="bundles")


@routes(
    "POST",
    "",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Apply a bundle",
    body=ApplyBody,
    sends=examples.BUNDLE,
    answer=Applied,
    example=examples.APPLIED,
    planned=True,
    warns=True,
)
def apply(resources: ResourcesOf, caller: CallerOf, document: Document, confirm: Confirm = False) -> Reply:
    """Applies all documents or none. A dry run is rejected if the real request would be.

    Documents of another bundle are rejected and manual edits are kept, unless `adopt` takes them over. `prune` deletes
    what an earlier version of this bundle created and this version omits. Set `confirm` if more than 1,000 schedules
    would fire within a minute.
    """
    caller = caller.confirming(confirm)
    asked = read_body(ApplyBody, document)
    bundle = read_bundle(asked.bundle, asked.members(), prune=asked.prune)
    may = {"dry_run": asked.dry_run, "prune": asked.prune, "adopt": asked.adopt}
    steps = apply_bundle(resources, caller, bundle, KINDS, **may)
    shown = tuple(_shown(step) for step in steps)
    return Reply(
        Applied(
            dry_run=asked.dry_run,
            bundle=bundle.name,
            changes=shown,
            starts_soon=sum(step.starts_soon for step in steps),
        )
    )


def _shown(step: Step) -> BundleChange:
    return BundleChange(
        change=step.change,
        kind=step.kind,
        name=step.name,
        diff=tuple(FieldChange(path=each.path, old=each.old, new=each.new) for each in step.diff),
        fires_added=step.fires_added,
        fires_removed=step.fires_removed,
        warnings=step.warnings,
        exhausted=step.exhausted,
    )
