"""Preparers of claimed runs that the features supply to the engine."""

from __future__ import annotations

from horarium.features.agents.preparation import AgentPlaces, AgentPreparer, token_names
from horarium.features.approvals.preparation import ApprovalPreparer
from horarium.features.runs.preparation import Preparers
from horarium.features.secrets.preparation import SecretPreparer
from horarium.features.workflows.preparation import WorkflowStarter
from horarium.platform.database.installation import Sealer


def preparers_with(sealer: Sealer | None = None) -> Preparers:
    """Return all preparers; without `sealer`, runs that need a secret are refused."""
    return Preparers(
        launches=(SecretPreparer(sealer, token_names), ApprovalPreparer(), AgentPreparer(sealer)),
        places=(AgentPlaces(),),
        starters=(WorkflowStarter(),),
    )
