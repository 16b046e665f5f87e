"""Tokens, secrets and namespaces in the browser: a secret is shown once or never, and only to whoever may."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from ui.conftest import Fresh, OpenPage, new_namespace
from ui.looking import settled
from ui.serving import TOKEN, Served
from ui.watching import Watch


def alone(open_page: OpenPage, fresh: Fresh, path: str, role: str = "admin") -> Page:
    page = open_page(path, token=fresh.tokens[role])
    settled(page)
    return page


def test_a_token_is_made_rotated_and_revoked(open_page: OpenPage, fresh: Fresh) -> None:
    page = alone(open_page, fresh, "/access")
    page.get_by_role("button", name="Create token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("the nightly job")
    dialog.get_by_label("Role").select_option("operator")
    dialog.get_by_role("button", name="Create").click()
    first = dialog.get_by_label("Secret", exact=True).inner_text().strip()
    dialog.get_by_role("button", name="Done").click()
    assert status(fresh, first) == 200
    row = page.get_by_role("row").filter(has_text="the nightly job")
    row.get_by_role("button", name="Rotate").click()
    dialog.get_by_label("Previous secret expires").select_option("Immediately")
    dialog.get_by_role("button", name="Rotate").click()
    second = dialog.get_by_label("Secret", exact=True).inner_text().strip()
    dialog.get_by_role("button", name="Done").click()
    assert (status(fresh, first), status(fresh, second)) == (401, 200)
    row.get_by_role("button", name="Revoke").click()
    dialog.get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("Revoked")
    expect(row.get_by_role("button")).to_have_count(0)
    assert status(fresh, second) == 401
    # One's own: the session goes on with what is shown.
    page.get_by_role("row").filter(has_text="Active").get_by_role("button", name="Rotate").click()
    dialog.get_by_label("Previous secret expires").select_option("Immediately")
    dialog.get_by_role("button", name="Rotate").click()
    third = dialog.get_by_label("Secret", exact=True).inner_text().strip()
    dialog.get_by_role("button", name="Done").click()
    assert (status(fresh, fresh.tokens["admin"]), status(fresh, third)) == (401, 200)
    page.reload()
    expect(row).to_contain_text("Revoked")


def status(fresh: Fresh, token: str) -> int:
    return fresh.served.ask("GET", "/api/schedules", namespace=fresh.namespace, token=token).status_code


def test_a_secret_is_kept_replaced_and_deleted_and_never_shown(open_page: OpenPage, fresh: Fresh, watch: Watch) -> None:
    watch.expect("status of 409")
    page = alone(open_page, fresh, "/access?tab=secrets")
    expect(page.get_by_role("main")).to_contain_text("No secrets yet")
    page.get_by_role("button", name="Create secret").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("erp-token")
    dialog.get_by_label("Value").fill("not-to-be-shown-1")
    dialog.get_by_label("Allowed hosts").fill("erp.example.com")
    dialog.get_by_role("button", name="Save secret").click()
    row = page.get_by_role("row").filter(has_text="erp-token")
    expect(row).to_contain_text("erp.example.com")
    row.get_by_role("button", name="Replace").click()
    dialog.get_by_label("Value").fill("not-to-be-shown-2")
    dialog.get_by_role("button", name="Replace").click()
    expect(row.get_by_role("cell", name="2", exact=True)).to_be_visible()
    expect(dialog).to_have_count(0)  # what is shown behind it may be newer than that it is gone
    assert "not-to-be-shown" not in page.content()
    header = {"Authorization": {"$secret": "erp-token"}}
    call = {"kind": "http", "url": "https://erp.example.com/", "headers": header}
    fresh.send("POST", "/api/schedules", {"schedule_id": "sync", "cron_expressions": ["0 0 1 1 *"], "action": call})
    row.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog.get_by_role("alert")).to_contain_text("sync")
    dialog.get_by_label("Delete even if in use").check()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("main")).to_contain_text("No secrets yet")


def test_whoever_may_not_change_them_sees_what_is_there(open_page: OpenPage, fresh: Fresh) -> None:
    fresh.send("PUT", "/api/secrets/erp-token", {"value": "not-to-be-shown"})
    page = alone(open_page, fresh, "/access?tab=tokens", role="viewer")
    expect(page.get_by_role("cell", name="erp-token")).to_be_visible()
    expect(page.get_by_role("tab")).to_have_text(["Secrets"])
    expect(page.get_by_role("main").get_by_role("button")).to_have_count(0)


def test_a_namespace_is_made_by_whoever_has_all_of_them(open_page: OpenPage, served: Served, watch: Watch) -> None:
    watch.expect("status of 409")
    taken = new_namespace(served).namespace
    page = open_page("/access?tab=namespaces", token=TOKEN)
    expect(page.get_by_role("row").filter(has_text="warehouse")).to_contain_text("the warehouse")
    page.get_by_role("button", name="Create namespace").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill(taken)
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    dialog.get_by_label("Name").fill(f"{taken}-2")
    dialog.get_by_role("button", name="Create").click()
    page.get_by_role("link", name=f"{taken}-2").click()
    expect(page.get_by_role("heading", level=1, name="Overview")).to_be_visible()
    expect(page.get_by_text(f"{taken}-2").first).to_be_attached()
