"""A browser signs in, works and signs out; what its cookie is good for, and for whom it is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from api.worlds import OUR_PAGE
from signing import SECRET, signed
from signing import claims as usual

from horarium.features.tenants import service as tenant_service
from horarium.features.tenants.rows import NewToken
from horarium.instant import SECOND, from_rfc3339
from horarium.platform.caller import Caller
from horarium.platform.http.browser_sessions import SessionCookies
from horarium.platform.ids import id_text
from horarium.platform.wire import Permission, Role
from horarium.testing import TestService, service

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

START = "2026-03-01T00:00:00Z"
JWTS = {"jwt_secret": SECRET, "jwt_audience": "horarium"}
ADMIN = Caller("root", Role.ADMIN)


@pytest.fixture
def horarium(database_url: str) -> Iterator[TestService]:
    with service(at=START, database=database_url, settings={"failed_logins_per_minute": 3, **JWTS}) as running:
        yield running


def token(horarium: TestService, role: str = "owner", **more: Any) -> NewToken:
    return tenant_service.issue_token(horarium.resources, ADMIN, name="ada", role=role, subject="ada", **more)


def browser(horarium: TestService) -> httpx.Client:
    http = horarium.http(token=None)
    http.headers.update(OUR_PAGE)
    return http


def signed_in(horarium: TestService, secret: str | None = None, **body: Any) -> httpx.Client:
    http = browser(horarium)
    answer = http.post("/api/session", json={"token": secret or token(horarium).secret, **body})
    assert answer.status_code == 200, answer.text
    return http


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


def cleared(answer: httpx.Response) -> bool:
    return "Max-Age=0" in answer.headers.get("set-cookie", "")


def test_a_token_is_exchanged_for_a_cookie_that_does_its_work(horarium: TestService) -> None:
    http, issued = browser(horarium), token(horarium)
    assert refusal(http.get("/api/session")) == (401, "unauthorized")
    answer = http.post("/api/session", json={"token": f" {issued.secret}\n"})
    said = answer.json()
    assert (said["principal"], said["role"], said["namespace"]) == ("ada", "owner", "default")
    assert said["permissions"] == [each for each in Permission if each is not Permission.ADMINISTER]
    assert (said["everywhere"], said["namespaces"], said["more_namespaces"]) == (False, ["default"], False)
    assert (said["now"], said["zone"], said["ends_at"]) == (START, "UTC", "2026-03-01T12:00:00Z")
    cookie = answer.headers["set-cookie"]
    assert cookie.endswith("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict")
    assert issued.secret not in cookie + answer.text
    assert http.get("/api/session").json() == said
    written = http.post(
        "/api/schedules", json={"schedule_id": "s", "cron_expressions": ["0 2 * * *"], "workflow_type": "x"}
    )
    assert written.status_code == 201
    [created] = http.get("/api/schedules/s/history").json()["events"]
    told = created["payload"]["command_context"]
    assert (told["principal"], told["source"]) == ("ada", "ui")


def test_who_is_at_home_everywhere_chooses_a_namespace(horarium: TestService) -> None:
    bearer = horarium.http()
    for name in ("zoo", "acme"):
        assert bearer.post("/api/namespaces", json={"namespace": name}).status_code == 201
    http = signed_in(horarium, token(horarium, "admin").secret, namespace="acme")
    assert http.get("/api/session", headers={"X-Namespace": "zoo"}).json()["namespace"] == "zoo"
    assert http.get("/api/session").json()["namespaces"] == ["acme", "default", "zoo"]
    own, other = token(horarium).secret, browser(horarium)
    refused = other.post("/api/session", json={"token": own, "namespace": "acme"})
    assert refusal(refused) == (404, "namespace_not_found")
    assert "set-cookie" not in refused.headers


def test_signing_out_takes_the_cookie_away(horarium: TestService) -> None:
    http = signed_in(horarium)
    assert refusal(http.delete("/api/session", headers={"Sec-Fetch-Site": "cross-site"})) == (403, "cross_site")
    assert http.get("/api/session").status_code == 200
    gone = http.delete("/api/session")
    assert (gone.status_code, gone.content, cleared(gone)) == (204, b"", True)
    assert http.get("/api/session").status_code == 401
    assert http.delete("/api/session").status_code == 204


def test_a_revoked_token_ends_the_session_at_once(horarium: TestService) -> None:
    issued = token(horarium)
    http = signed_in(horarium, issued.secret)
    assert horarium.http().delete(f"/api/tokens/{id_text(issued.token_id)}").status_code == 200
    ended = http.get("/api/schedules")
    assert (refusal(ended), cleared(ended), len(http.cookies)) == ((401, "unauthorized"), True, 0)


@pytest.mark.parametrize("overlap", [0, 3_600])
def test_who_rotates_the_token_of_the_session_goes_on_with_the_new_one(horarium: TestService, overlap: int) -> None:
    issued, other = token(horarium, "admin"), token(horarium, "admin")
    http = signed_in(horarium, issued.secret)
    path, body = "/api/tokens/{}/rotate", {"overlap_seconds": overlap}
    assert "set-cookie" not in http.post(path.format(id_text(other.token_id)), json=body).headers
    horarium.clock.advance(3_600)
    done = http.post(path.format(id_text(issued.token_id)), json=body)
    assert done.json()["secret"] not in done.headers["set-cookie"]
    horarium.clock.advance(overlap)
    assert http.get("/api/session").json()["ends_at"] == "2026-03-01T12:00:00Z"
    assert horarium.http(token=issued.secret).get("/api/session").status_code == 401
    fresh = done.json()["secret"]
    by_token = horarium.http(token=fresh).post(path.format(id_text(issued.token_id)), json=body)
    assert (by_token.status_code, "set-cookie" in by_token.headers) == (200, False)


def test_a_session_ends_after_its_hours(horarium: TestService) -> None:
    http = signed_in(horarium)
    kept = {"Cookie": _cookie(http)}
    horarium.clock.advance(12 * 3_600 - 1)
    assert http.get("/api/schedules").status_code == 200
    horarium.clock.advance(1)
    for _ in range(5):  # nobody has guessed, so nobody is told to wait
        over = http.get("/api/schedules", headers=kept)
        assert (refusal(over), cleared(over)) == ((401, "unauthorized"), True)


def _cookie(http: httpx.Client) -> str:
    return "; ".join(f"{each.name}={each.value}" for each in http.cookies.jar)


def test_a_signed_token_is_good_until_it_says(horarium: TestService) -> None:
    now = from_rfc3339(START) // SECOND
    http = signed_in(horarium, signed(usual(now, exp=now + 600)))
    assert http.get("/api/session").json()["ends_at"] == "2026-03-01T00:10:00Z"
    horarium.clock.advance(600)
    assert http.get("/api/session").status_code == 401
    late = browser(horarium).post("/api/session", json={"token": signed(usual(now, exp=now + 600))})
    assert refusal(late) == (401, "unauthorized")
    long = signed(usual(now + 600, exp=now + 1_200, filler="x" * 3_000))
    refused = browser(horarium).post("/api/session", json={"token": long})
    assert (refusal(refused), list(refused.json()["errors"])) == ((422, "validation_failed"), ["token"])


def test_who_guesses_is_counted_as_with_any_token(horarium: TestService) -> None:
    http, wrong = browser(horarium), {"token": "hor_guessed"}
    refused = [refusal(http.post("/api/session", json=wrong)) for _ in range(4)]
    assert refused == [(401, "unauthorized")] * 3 + [(429, "too_many_failed_logins")]
    bearer = horarium.http(token="hor_guessed")
    horarium.clock.advance(60)
    said = bearer.get("/api/schedules").json()["message"]
    assert http.post("/api/session", json=wrong).json()["message"] == said
    horarium.parts.api.state.refusals.flush(all_of_it=True)
    [entry, *_] = horarium.http().get("/api/audit", params={"act": "login_failed"}).json()["entries"]
    assert "guessed" not in str(entry)


def test_what_is_no_token_is_refused(horarium: TestService) -> None:
    tried: list[tuple[Any, int]] = [
        ({}, 422),
        ([1], 422),
        ({"token": 1}, 422),
        ({"token": "a\x00b"}, 422),
        ({"token": "x" * 9_000}, 422),
        ({"token": "x" * 20_000}, 413),
        ({"token": ""}, 401),
        ({"token": "t\u00f6ken"}, 401),
        ({"token": "hsc_AAAA"}, 401),
    ]
    for body, status in tried:
        answer = browser(horarium).post("/api/session", json=body)
        assert (answer.status_code, "set-cookie" in answer.headers) == (status, False), body


def test_pages_of_other_sites_do_nothing_with_it(horarium: TestService) -> None:
    http, pause = signed_in(horarium), "/api/schedules/s/pause"
    another, neighbour = {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}
    tried = [
        ("GET", "/api/schedules", another, 403),
        ("GET", "/api/schedules", neighbour, 403),
        ("GET", "/api/schedules", {"Sec-Fetch-Site": "none"}, 200),
        ("GET", "/api/events", another, 403),
        ("POST", pause, another, 403),
        ("POST", pause, {"X-Horarium-Source": "api"}, 403),
        ("POST", "/api/runs/reports", another, 403),
        ("POST", "/api/session", another, 403),
        ("POST", "/api/session/link", neighbour, 403),
        ("POST", pause, {}, 404),
    ]
    for method, path, headers, status in tried:
        answer = http.request(method, path, headers=headers)
        assert (answer.status_code, cleared(answer)) == (status, False), (path, answer.text)
        assert status != 403 or answer.json()["reason"] == "cross_site"
    # The token itself is nothing that a browser sends along.
    assert horarium.http().get("/api/schedules", headers=another).status_code == 200


def test_without_the_word_of_the_browser_the_origin_is_compared(horarium: TestService) -> None:
    http = signed_in(horarium)
    del http.headers["Sec-Fetch-Site"]
    own = str(http.base_url).rstrip("/")
    tried = {
        origin: http.post("/api/session/link", headers={"Origin": origin}).status_code
        for origin in (own, "null", f"{own}:81")
    }
    assert tried == {own: 200, "null": 403, f"{own}:81": 403}
    assert refusal(http.post("/api/session/link")) == (403, "cross_site")


def test_a_token_in_the_header_wins_over_the_cookie(horarium: TestService) -> None:
    http = signed_in(horarium)
    said = http.get("/api/session", headers={"Authorization": f"Bearer {token(horarium, 'viewer').secret}"}).json()
    assert (said["role"], said["ends_at"]) == ("viewer", None)
    wrong = http.get("/api/session", headers={"Authorization": "Bearer hor_wrong"})
    assert (wrong.status_code, cleared(wrong)) == (401, False)


def test_a_password_for_a_proxy_leaves_the_session_as_it_is(horarium: TestService) -> None:
    http, password = signed_in(horarium), {"Authorization": "Basic YWRhOng="}
    said = http.get("/api/session", headers=password)
    assert (said.status_code, said.json()["ends_at"]) == (200, "2026-03-01T12:00:00Z")
    assert http.post("/api/schedules/s/pause", headers=password).status_code == 404
    foreign = http.post("/api/schedules/s/pause", headers={**password, "Sec-Fetch-Site": "cross-site"})
    assert refusal(foreign) == (403, "cross_site")
    assert refusal(browser(horarium).get("/api/session", headers=password)) == (401, "unauthorized")


def test_a_damaged_cookie_is_taken_away_and_a_foreign_one_left_alone(horarium: TestService) -> None:
    name = SessionCookies(horarium.resources.tokens.key).name
    http = browser(horarium)
    damaged = http.get("/api/schedules", headers={"Cookie": f"{name}=AAAA"})
    assert (refusal(damaged), cleared(damaged)) == ((401, "unauthorized"), True)
    foreign = http.get("/api/schedules", headers={"Cookie": "horarium_0123456789=AAAA; theme=dark"})
    assert (refusal(foreign), cleared(foreign)) == ((401, "unauthorized"), False)
    good = _cookie(signed_in(horarium))
    assert http.get("/api/schedules", headers={"Cookie": f"{name}=AAAA; {good}"}).status_code == 200


def test_a_session_and_its_token_share_what_one_may_use(database_url: str) -> None:
    with service(at=START, database=database_url, settings={"rate_limit_burst": 3, "rate_limit_per_second": 1}) as few:
        secret = token(few).secret
        http, bearer = signed_in(few, secret), few.http(token=secret)
        assert [http.get("/api/session").status_code, bearer.get("/api/session").status_code] == [200, 200]
        assert refusal(http.get("/api/session")) == (429, "rate_limited")


def test_by_tls_the_cookie_never_goes_without(database_url: str) -> None:
    proxies = {"behind_proxy": True, "trusted_proxies": ["127.0.0.0/8"]}
    with service(at=START, database=database_url, settings=proxies) as running:
        tried = [
            ({}, False),
            ({"X-Forwarded-Proto": "https, http"}, False),
            ({"X-Forwarded-Proto": "http, https"}, True),
            ({"Origin": "https://horarium.example"}, True),  # the browser says so
        ]
        for headers, secure in tried:
            answer = browser(running).post("/api/session", json={"token": token(running).secret}, headers=headers)
            assert answer.headers["set-cookie"].endswith("; Secure") is secure
            assert answer.headers["set-cookie"].startswith("__Host-") is secure


_BY_TLS = {"X-Forwarded-Proto": "https"}


@pytest.mark.parametrize(("base", "prefix"), [("", "__Host-"), ("/tools/jobs", "__Secure-")])
def test_by_tls_a_session_begins_under_a_name_that_no_other_host_can_set(
    database_url: str, base: str, prefix: str
) -> None:
    knobs = {"behind_proxy": True, "trusted_proxies": ["127.0.0.0/8"], "base_path": base}
    with service(at=START, database=database_url, settings=knobs) as running:
        name = SessionCookies(running.resources.tokens.key).name
        old = _cookie(signed_in(running))
        assert old.startswith(f"{name}=")
        begun = browser(running).post(
            f"{base}/api/session", json={"token": token(running).secret}, headers={**_BY_TLS, "Cookie": old}
        )
        made, *ended = begun.headers.get_list("set-cookie")
        assert made.startswith(f"{prefix}{name}=")
        assert f"; Path={base}/; " in made
        paths = ["/", "/tools/", "/tools/jobs/"] if base else ["/"]
        assert ended == [f"{name}=; Path={path}; Max-Age=0; HttpOnly; SameSite=Strict" for path in paths]
        kept = made.partition(";")[0]

        def asks(cookie: str) -> httpx.Response:
            return browser(running).get(f"{base}/api/session", headers={**_BY_TLS, "Cookie": cookie})

        assert asks(old).status_code == 401  # any host of the domain may have set it
        assert asks(f"{old}; {kept}").status_code == 200
        gone = browser(running).delete(f"{base}/api/session", headers={**_BY_TLS, "Cookie": f"{old}; {kept}"})
        assert sorted(each.partition("=")[0] for each in gone.headers.get_list("set-cookie")) == sorted(
            [name, f"{prefix}{name}"] * len(paths)
        )
        assert all(("; Secure" in each) is each.startswith("__") for each in gone.headers.get_list("set-cookie"))


def test_two_different_sessions_are_none(horarium: TestService) -> None:
    """One of them was put there by somebody else, and nothing says which."""
    mine, other, again = (_cookie(signed_in(horarium, each.secret)) for each in _three_tokens(horarium))
    http = browser(horarium)
    for both in (f"{mine}; {other}", f"{other}; {mine}"):
        refused = http.get("/api/schedules", headers={"Cookie": both})
        assert (refusal(refused), cleared(refused)) == ((401, "unauthorized"), True)
        assert http.post("/api/schedules/s/pause", headers={"Cookie": both}).status_code == 401
    assert mine != again
    name = mine.partition("=")[0]
    for between in ([f"{name}=none{n}" for n in range(9)], [f"x{n}=1" for n in range(300)]):
        hidden = "; ".join([other, *between, mine])
        assert http.get("/api/schedules", headers={"Cookie": hidden}).status_code == 401
    for one in (f"{mine}; {again}", mine, f"{mine}; {mine}"):
        assert http.get("/api/schedules", headers={"Cookie": one}).status_code == 200


def _three_tokens(horarium: TestService) -> tuple[NewToken, NewToken, NewToken]:
    mine = token(horarium)
    return mine, token(horarium), mine


def test_a_first_visit_is_no_failed_login(horarium: TestService) -> None:
    http = browser(horarium)
    for _ in range(3):
        assert http.get("/api/session").status_code == 401
        assert http.get("/api/schedules", headers={"Authorization": "Basic YTpi"}).status_code == 401
    horarium.clock.advance(60)
    horarium.parts.api.state.refusals.flush(all_of_it=True)
    assert horarium.http().get("/api/audit", params={"act": "login_failed"}).json()["entries"] == []
    assert http.get("/api/session", headers={"Authorization": "Bearer hor_wrong"}).status_code == 401
    horarium.parts.api.state.refusals.flush(all_of_it=True)
    [entry] = horarium.http().get("/api/audit", params={"act": "login_failed"}).json()["entries"]
    assert entry["detail"]["count"] == 1


def test_a_dry_run_says_whose_code_it_is_and_leaves_it_good(horarium: TestService) -> None:
    made = horarium.http(token=token(horarium, "viewer").secret).post("/api/session/link").json()["code"]
    http = browser(horarium)
    for _ in range(2):
        seen = http.post("/api/session", json={"token": made, "dry_run": True})
        assert (seen.status_code, "set-cookie" in seen.headers) == (200, False)
        assert (seen.json()["principal"], seen.json()["role"], seen.json()["namespace"]) == ("ada", "viewer", "default")
    assert http.get("/api/session").status_code == 401
    assert http.post("/api/session", json={"token": made}).status_code == 200
    other = browser(horarium)
    for dry_run in (True, False):
        used = other.post("/api/session", json={"token": made, "dry_run": dry_run})
        assert (used.status_code, "already used" in used.json()["message"]) == (401, True)


def test_a_code_that_is_refused_stays_good(horarium: TestService) -> None:
    made = horarium.http(token=token(horarium).secret).post("/api/session/link").json()["code"]
    elsewhere = browser(horarium).post("/api/session", json={"token": made, "namespace": "acme"})
    assert refusal(elsewhere) == (404, "namespace_not_found")
    assert browser(horarium).post("/api/session", json={"token": made}).status_code == 200


def test_a_code_signs_a_browser_in_for_a_minute(horarium: TestService) -> None:
    made = horarium.http(token=token(horarium, "viewer").secret).post("/api/session/link").json()
    assert made["expires_at"] == "2026-03-01T00:01:00Z"
    http = signed_in(horarium, made["code"])
    assert http.get("/api/session").json()["role"] == "viewer"
    again = http.post("/api/session/link").json()["code"]
    assert horarium.http(token=again).get("/api/session").status_code == 401
    horarium.clock.advance(60)
    assert browser(horarium).post("/api/session", json={"token": made["code"]}).status_code == 401


def test_a_session_makes_no_code_that_outlasts_it(horarium: TestService) -> None:
    http = signed_in(horarium)
    horarium.clock.advance(12 * 3_600 - 30)
    made = http.post("/api/session/link").json()
    assert made["expires_at"] == "2026-03-01T12:00:00Z"
    other = signed_in(horarium, made["code"])
    assert other.get("/api/session").json()["ends_at"] == "2026-03-01T12:00:00Z"
    horarium.clock.advance(30)
    assert other.get("/api/session").status_code == 401
