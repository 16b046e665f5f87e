import { QueryClient } from "@tanstack/react-query";
import { afterEach, expect, test, vi } from "vitest";
import { firstQueryOf } from "../pages/schedules/pageQuery";
import { askEarly } from "./early";

const SESSION = { principal: "ada", role: "viewer", namespace: "shop", permissions: ["read"] };
const PAGE = { schedules: [], next_page_token: null };

function answering(session: object, status = 200) {
  const asked: string[] = [];
  vi.stubGlobal("fetch", (address: string, { headers }: { headers: Record<string, string> }) => {
    asked.push(`${address} ${headers["X-Namespace"] ?? ""}`.trim());
    const isSession = address.endsWith("/api/session");
    return Promise.resolve(
      new Response(JSON.stringify(isSession ? session : PAGE), { status: isSession ? status : 200 }),
    );
  });
  return asked;
}

afterEach(() => vi.unstubAllGlobals());

const LIST = "api/schedules?text=night&include=recent&page_size=50";

test.each<[string, string, Record<string, unknown>, object, string[]]>([
  ["the list of the namespace of the token", "/schedules", { text: "night" }, SESSION, ["api/session", `${LIST} shop`]],
  ["that of the address", "/schedules", { text: "night", ns: "ops" }, SESSION, ["api/session", `${LIST} ops`]],
  ["nothing without the permission to read", "/schedules", {}, { ...SESSION, permissions: [] }, ["api/session"]],
  ["nothing for another page", "/runs", {}, SESSION, ["api/session"]],
])("asked for early: %s", async (_, pathname, search, session, asked) => {
  const found = answering(session);
  const queries = new QueryClient();
  await askEarly(queries, { pathname, search });
  expect(found.map((each) => each.replace(/^\//, ""))).toEqual(asked);
  if (asked.length > 1) {
    const namespace = asked[1]!.split(" ")[1]!;
    expect(queries.getQueryData(firstQueryOf(namespace, search).queryKey)).toEqual(PAGE);
  }
});

test("without a session nothing else is requested", async () => {
  const found = answering({}, 401);
  await askEarly(new QueryClient(), { pathname: "/schedules", search: {} });
  expect(found).toHaveLength(1);
});
