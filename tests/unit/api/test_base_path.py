"""Under which path we are seen: with a proxy that takes it away, with one that leaves it, and mounted."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.errors import InvalidDefinition
from horarium.platform.http.connections import base_of, based, check_base, inner_path


@pytest.mark.parametrize(
    ("path", "root", "setting", "base", "inner"),
    [
        pytest.param("/docs", "", "", "", "/docs", id="at the root"),
        pytest.param("/docs", "", "/jobs", "/jobs", "/docs", id="a proxy that takes it away"),
        pytest.param("/jobs/docs", "", "/jobs", "/jobs", "/docs", id="a proxy that leaves it"),
        pytest.param("/jobs", "", "/jobs", "/jobs", "/", id="nothing behind it"),
        pytest.param("/jobs/", "", "/jobs", "/jobs", "/", id="a slash behind it"),
        pytest.param("/jobsite", "", "/jobs", "/jobs", "/jobsite", id="another word"),
        pytest.param("/a/b/docs", "", "/a/b", "/a/b", "/docs", id="of two words"),
        pytest.param("/sched/docs", "/sched", "", "/sched", "/docs", id="mounted"),
        pytest.param("/sched/docs", "/sched", "/jobs", "/sched", "/docs", id="whoever mounts us knows better"),
        pytest.param("/docs", "/sched/", "", "/sched", "/docs", id="a server that takes it away by itself"),
    ],
)
def test_the_path_inside(path: str, root: str, setting: str, base: str, inner: str) -> None:
    scope: dict[str, Any] = {"path": path, "root_path": root}
    seen = based(scope, setting)
    assert (base_of(seen), inner_path(seen)) == (base, inner)
    assert scope == {"path": path, "root_path": root}


@pytest.mark.parametrize("base", ["/api", "/schedules/x", "/ui"])
def test_a_base_that_is_one_of_our_own_paths_is_refused(base: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        check_base(base, ["/api/schedules", "/schedules/{schedule_id}", "/ui"])
    assert "path of this service" in refused.value.errors["base_path"][0]


def test_another_base_is_fine() -> None:
    check_base("", ["/", "/api/schedules"])
    check_base("/apis", ["/", "/api/schedules"])
