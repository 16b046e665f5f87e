import { describe, expect, it } from "vitest";
import { filtersOf, isFiltered, queryOf, searchOf, type ApprovalFilters } from "./filters";
import {
  actionText,
  askedText,
  hasAgreed,
  inline,
  mayDecide,
  refusalOf,
  titleOf,
  wantedOf,
  yesText,
  type Approval,
} from "./questions";
import { EMPTY_STANDING, standingOf, type StandingDraft } from "./standingForm";

const USUAL: ApprovalFilters = { status: "pending", mine: false, gate: "", schedule: "", all: false };

describe("filtersOf", () => {
  it.each<[search: Record<string, unknown>, filters: Partial<ApprovalFilters>]>([
    [{}, {}],
    [
      { status: "all", mine: true, gate: "publish", schedule: 7 },
      { status: "all", mine: true, gate: "publish", schedule: "7" },
    ],
    [{ status: "toString", mine: "yes", gate: ["a"], schedule: null }, {}],
  ])("%j", (search, filters) => {
    expect(filtersOf(search)).toEqual({ ...USUAL, ...filters });
  });

  it("comes back from the address as it went there", () => {
    const filters = { status: "rejected", mine: true, gate: "g", schedule: "s", all: false };
    expect(filtersOf(searchOf(filters))).toEqual(filters);
    expect(queryOf(filters)).toEqual({ status: "rejected", mine: true, gate: "g", schedule_id: "s" });
    expect([isFiltered(filters), isFiltered(USUAL)]).toEqual([true, false]);
    expect(filtersOf(searchOf({ ...USUAL, all: true })).all).toBe(true);
    expect(queryOf({ ...USUAL, all: true })).toEqual({ status: "pending", namespace: "*" });
  });
});

describe("mayDecide", () => {
  const ada = { principal: "ada", role: "viewer", permissions: ["look", "read"] };
  const op = { principal: "op", role: "operator", permissions: ["look", "approve"] };
  it.each<[who: typeof ada, approvers: string[], may: boolean]>([
    [ada, [], false],
    [op, [], true],
    [ada, ["ada"], true],
    [op, ["ada"], false],
    [op, ["role:operator"], true],
    [ada, ["role:operator", "bob"], false],
  ])("%j with %j", (who, approvers, may) => {
    expect(mayDecide(who, { approvers })).toBe(may);
  });
});

describe("refusalOf", () => {
  it.each<[Pick<Approval, "may_decide" | "refusal_message">, string | null]>([
    [{}, null],
    [{ may_decide: true }, null],
    [{ may_decide: false, refusal_message: "not yours" }, "not yours"],
    [{ may_decide: false }, ""],
  ])("%j", (approval, refusal) => {
    expect(refusalOf(approval)).toBe(refusal);
  });
});

describe("questions", () => {
  it.each<[gates: string[], wanted: string]>([
    [[], "yes"],
    [["publish"], "yes"],
    [["agent_input"], "text"],
    [["agent_auth"], "text or yes"],
  ])("%j want %s", (gates, wanted) => {
    expect(wantedOf({ gates })).toBe(wanted);
  });

  it.each([
    [{ gates: [], node_id: null }, "This run requires approval before it starts."],
    [{ gates: ["publish", "spend"], node_id: "send" }, "Step send requires approval for publish, spend."],
    [{ gates: ["agent_input"], node_id: null }, "The agent asks a question."],
    [{ gates: ["agent_auth"], node_id: null }, "The agent requests authentication."],
  ])("%j", (asked, text) => {
    expect(askedText(asked)).toBe(text);
  });

  it.each([
    [{ schedule_id: "s", workflow_id: "w", node_id: "n" }, "s · n"],
    [{ schedule_id: "s", schedule_name: "Nightly", workflow_id: "w", node_id: "n" }, "Nightly · n"],
    [{ schedule_id: null, workflow_id: "w", workflow_name: "The brief", node_id: null }, "The brief"],
    [{ schedule_id: null, workflow_id: "w", node_id: null }, "w"],
    [{ schedule_id: null, workflow_id: null, node_id: null }, "Run"],
  ])("%j", (asked, title) => {
    expect(titleOf(asked)).toBe(title);
  });

  it.each<[votes: [by: string, decision: string][], text: string]>([
    [[], "0 of 2"],
    [[["a", "approve"]], "1 of 2"],
    [
      [
        ["a", "approve"],
        ["a", "modify"],
      ],
      "1 of 2",
    ],
    [[["a", "reject"]], "0 of 2"],
  ])("%j", (votes, text) => {
    const given = votes.map(([by, decision]) => ({ by, decision, reason: null, at: "" })) as Approval["votes"];
    expect(yesText({ votes: given, approvals_required: 2 })).toBe(text);
    expect(hasAgreed({ principal: "a" }, { votes: given })).toBe(text === "1 of 2");
    expect(hasAgreed({ principal: "b" }, { votes: given })).toBe(false);
  });

  it.each<[action: Record<string, unknown> | null, text: string | null]>([
    [null, null],
    [{}, null],
    [{ kind: "http", url: "https://example.org" }, "POST request to https://example.org"],
    [{ kind: "http", url: { $secret: "u" }, method: "GET" }, 'GET request to {"$secret":"u"}'],
    [{ kind: "workflow", workflow_id: "brief" }, "Workflow brief"],
    [{ kind: "workflow", workflow_type: "report", queue: "q" }, "Task report in queue q"],
    [{ kind: "pull", workflow_type: "report", queue: "q" }, "Task report in queue q"],
    [{ kind: "prompt", prompt: "Say\n  hello" }, "Agent prompt: “Say hello”"],
    [{ kind: "command", command: ["ls", "-l"] }, "Command ls -l"],
    [{ kind: "python", task: "demo.send" }, "Python task demo.send"],
    [{ kind: "constructor" }, "Action of kind constructor"],
    [{ kind: "prompt", prompt: "x".repeat(999) }, `Agent prompt: “${"x".repeat(144)}…`],
  ])("%j", (action, text) => {
    expect(actionText(action)).toBe(text);
  });

  it("writes inputs in a line", () => {
    expect([inline(null), inline({ a: [1] }), inline("x".repeat(500)).length]).toEqual(["No inputs", '{"a":[1]}', 140]);
  });
});

describe("standingOf", () => {
  it.each<[draft: Partial<StandingDraft>, sent: object]>([
    [{ id: " s " }, { schedule_id: "s", gates: [], until: "7d" }],
    [
      { of: "workflow", id: "w", gates: "a, b  a,", lasts: "", uses: "3", reason: " away " },
      { workflow_id: "w", gates: ["a", "b"], max_uses: 3, reason: "away" },
    ],
  ])("%j", (draft, sent) => {
    expect(standingOf({ ...EMPTY_STANDING, ...draft })).toEqual(sent);
  });
});
