"""Roles of callers, and the permissions that routes require."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    ADMIN = "admin"
    OWNER = "owner"
    OPERATOR = "operator"
    VIEWER = "viewer"
    AGENT = "agent"


class Permission(StrEnum):
    LOOK = "look"  # which server this is, and single runs: an agent sees its own, whoever may read sees all
    READ = "read"
    WRITE = "write"  # create, change and delete what is one's own; start runs; give a trigger other inputs
    OPERATE = "operate"  # pause, resume, trigger, backfill, stop
    APPROVE = "approve"  # decide what waits for a yes
    SCHEDULE = "schedule"  # write the schedules of a workspace: an agent those of its own
    RUN = "run"  # start one of them now
    WORK = "work"  # take runs from a queue and report on them
    ADMINISTER = "administer"  # tokens, namespaces, what belongs to others
