"""Why a list of schedules is refused, in the words that the Durable Workflow client knows.

OperationError
└── ListRefused
    ├── MalformedPageToken       malformed_schedule_page_token                400
    ├── ForeignPageToken         schedule_page_token_namespace_mismatch       403
    ├── OtherFilters             schedule_page_token_filter_mismatch          409
    ├── StalePageToken           stale_schedule_page_token                    409
    ├── UnsupportedFilter        unsupported_schedule_list_filter             422
    ├── UnsupportedPredicate     unsupported_schedule_visibility_predicate    422
    ├── UnsupportedField         unsupported_schedule_visibility_field        422
    └── InvalidQuery             invalid_schedule_visibility_query            422
"""

from __future__ import annotations

from horarium.instant import to_rfc3339
from horarium.operations.errors import OperationError
from horarium.store.schedules.lists import Cursor


class ListRefused(OperationError):
    """`parameter` is to blame; `last_safe_cursor` is the row up to which the caller has seen the list, if we know."""

    def __init__(self, parameter: str, message: str, seen: Cursor | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.last_safe_cursor = seen and {"created_at": to_rfc3339(seen.created_at), "schedule_id": seen.schedule_id}


class MalformedPageToken(ListRefused):
    reason = "malformed_schedule_page_token"
    status = 400


class ForeignPageToken(ListRefused):
    reason = "schedule_page_token_namespace_mismatch"
    status = 403


class OtherFilters(ListRefused):
    reason = "schedule_page_token_filter_mismatch"
    status = 409


class StalePageToken(ListRefused):
    reason = "stale_schedule_page_token"
    status = 409


class UnsupportedFilter(ListRefused):
    reason = "unsupported_schedule_list_filter"
    status = 422


class UnsupportedPredicate(ListRefused):
    reason = "unsupported_schedule_visibility_predicate"
    status = 422


class UnsupportedField(ListRefused):
    reason = "unsupported_schedule_visibility_field"
    status = 422


class InvalidQuery(ListRefused):
    reason = "invalid_schedule_visibility_query"
    status = 422
