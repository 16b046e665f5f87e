import { describe, expect, test } from "vitest";
import {
  BEGINNING,
  countedOf,
  itemOf,
  stepOf,
  type Changed,
  type Choice,
  type Cursor,
  type Many,
  type Service,
} from "./bulk";

const paused = (id: string): Changed => ({ schedule_id: id, outcome: "paused", reason: null, message: null });
const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `s${index}`);

/** A service with so many schedules; it notes what it was asked. */
function service(count: number): Service & { asked: (Choice | "all")[] } {
  const asked: (Choice | "all")[] = [];
  const page = (token: string | null) => {
    const from = Number(token ?? 0);
    return { found: names(count).slice(from, from + 100), next: from + 100 < count ? String(from + 100) : null };
  };
  return {
    asked,
    change: (choice, token) => {
      asked.push(choice);
      if (choice !== "all" && choice.ids) return Promise.resolve({ outcomes: choice.ids.map(paused) });
      const { found, next } = page(token);
      return Promise.resolve({ outcomes: found.map(paused), next_page_token: next });
    },
    list: (_query, token) => Promise.resolve({ ids: page(token).found, next_page_token: page(token).next }),
  };
}

async function walk(many: Many, to: Service): Promise<string[]> {
  const seen: string[] = [];
  for (let at: Cursor | null = BEGINNING; at !== null;) {
    const step: Awaited<ReturnType<typeof stepOf>> = await stepOf(many, at, to);
    seen.push(...step.outcomes.map((each) => each.schedule_id));
    at = step.next;
  }
  return seen;
}

describe("every one is reached, once", () => {
  test.each([0, 1, 100, 101, 250])("%i ids", async (count) => {
    const to = service(count);
    expect(await walk({ kind: "ids", ids: names(count) }, to)).toEqual(names(count));
    expect(to.asked.length).toBe(Math.ceil(count / 100));
  });

  test.each([0, 100, 250])("%i by the service's filter", async (count) => {
    expect(await walk({ kind: "filter", choice: { status: "paused" } }, service(count))).toEqual(names(count));
  });

  test.each([0, 100, 250])("%i of a list", async (count) => {
    const to = service(count);
    expect(await walk({ kind: "listed", query: { owner: "me" } }, to)).toEqual(names(count));
    expect(to.asked.every((each) => each !== "all" && (each.ids?.length ?? 0) <= 100)).toBe(true);
  });
});

test("those of a list that are gone thereby do not hide the next ones", async () => {
  let left = names(250);
  const to: Service = {
    change: (choice) => {
      const ids = (choice as Choice).ids ?? [];
      left = left.filter((each) => !ids.includes(each));
      return Promise.resolve({ outcomes: ids.map(paused) });
    },
    list: (_query, token) => {
      if (token !== null && !left.includes(token))
        return Promise.reject(new Error("the schedule that this page begins after is gone"));
      const from = token === null ? 0 : left.indexOf(token) + 1;
      const ids = left.slice(from, from + 100);
      return Promise.resolve({ ids, next_page_token: from + 100 < left.length ? ids.at(-1) : null });
    },
  };
  expect(await walk({ kind: "listed", query: {} }, to)).toEqual(names(250));
});

test.each([
  [undefined, { kind: "filter", choice: "all" }],
  [
    { ids: ["a", "b"], atLeast: false },
    { kind: "ids", ids: ["a", "b"] },
  ],
  [
    { ids: ["a", "b"], atLeast: true },
    { kind: "filter", choice: "all" },
  ],
] as const)("of %o the counted ones are selected", (counted, meant) => {
  expect(countedOf({ kind: "filter", choice: "all" }, counted)).toEqual(meant);
});

test("an object that was skipped or refused carries its reason", () => {
  const failed: Changed = { schedule_id: "b", outcome: "failed", reason: "not_the_owner", message: "no" };
  expect(itemOf(failed)).toEqual({ id: "b", outcome: "failed", failure: "no" });
  expect(itemOf({ ...failed, outcome: "skipped", message: null }).failure).toBe("Workflow has another owner");
  expect(itemOf(paused("a"))).toEqual({ id: "a", outcome: "paused", failure: null });
});
