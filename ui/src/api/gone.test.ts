import { QueryClient } from "@tanstack/react-query";
import { describe, expect, test } from "vitest";
import { isAbout, isGone, letGo } from "./gone";

const PATH = "/api/workflows/{workflow_id}";
const ours = { path: { workflow_id: "nightly" } };
const SCHEDULE = "/api/schedules/{schedule_id}";

describe("isAbout", () => {
  test.each<[key: readonly unknown[], about: boolean]>([
    [["default", PATH, ours], true],
    [["default", PATH, ours, "tagged"], true],
    [["default", `${PATH}/versions`, { ...ours, query: { page_size: 3 } }, "pages"], true],
    [["default", PATH, { path: { workflow_id: "weekly" } }], false],
    [["other", PATH, ours], false],
    [["default", "/api/workflows", { query: {} }], false],
    [["default", "/api/workflows/{workflow_id}s", ours], false],
    [["default", "draft", "nightly", {}], false],
    [["session"], false],
  ])("%j", (key, about) => {
    expect(isAbout(key, "default", PATH, ours.path)).toBe(about);
  });
});

test.each([
  ["/api/schedules/{schedule_id}", false],
  ["/api/schedules/{schedule_id}/history", false],
  ["/api/schedules/{schedule_id}/health", true],
])("of a schedule that is deleted %s ends: %s", (asked, ends) => {
  const names = { schedule_id: "nightly" };
  expect(isAbout(["default", asked, { path: names }], "default", SCHEDULE, names)).toBe(ends);
});

test("an agent that is deleted is no workspace any more", () => {
  const key = ["default", "/workspaces/{workspace_id}/schedules", { path: { workspace_id: "writer" } }];
  expect(isAbout(key, "default", "/api/agents/{agent_id}", { agent_id: "writer" })).toBe(true);
  expect(isAbout(key, "default", "/api/agents/{agent_id}", { agent_id: "reader" })).toBe(false);
});

test("what went is gone until it is refused, or there is a new one of that name", () => {
  const queries = new QueryClient();
  const key = ["default", PATH, ours];
  queries.setQueryData(key, { workflow_id: "nightly" }, { updatedAt: 1_000 });
  const query = queries.getQueryCache().find({ queryKey: key })!;
  expect(isGone(query)).toBe(false);
  const back = letGo(queries, "default", PATH, ours.path);
  expect(isGone(query)).toBe(true);
  back();
  expect(isGone(query)).toBe(false);
  letGo(queries, "default", PATH, ours.path);
  queries.setQueryData(key, { workflow_id: "nightly", note: "another" }, { updatedAt: 2_000 });
  expect(isGone(query)).toBe(false);
});

test("what was asked before it went is not listened to any more", async () => {
  const queries = new QueryClient();
  const key = ["default", PATH, ours];
  queries.setQueryData(key, { workflow_id: "nightly" }, { updatedAt: 1_000 });
  const query = queries.getQueryCache().find({ queryKey: key })!;
  let answer: (found: unknown) => void = () => undefined;
  let isGivenUp = () => false;
  const asking = queries.fetchQuery({
    queryKey: key,
    queryFn: ({ signal }) => {
      isGivenUp = () => signal.aborted;
      return new Promise((resolve) => (answer = resolve));
    },
  });
  letGo(queries, "default", PATH, ours.path);
  answer({ workflow_id: "nightly", note: "from before" });
  await asking.catch(() => undefined);
  expect(isGivenUp()).toBe(true);
  expect(isGone(query)).toBe(true);
});
