import { expect, test } from "vitest";
import { foreseen, hasInputs, ofDay, taken } from "./decisions";

const PREVIEW = {
  tick_at: "2026-11-16T08:00:00Z",
  due: "2026-11-16T08:00:00Z",
  decision: "dispatch",
  reason: null,
  detail: null,
  inputs: { team: "red" },
  inputs_omitted: false,
  certainty: "certain",
  sentence: "The occurrence will run.",
  rotation_index: 1,
} as const;
const AGENDA = {
  schedule_id: "s",
  at: "2026-11-15T08:00:00Z",
  decision: "dispatch",
  reason: null,
  predicted: false,
  run_id: "r",
  state: "failed",
  count: 1,
  started_at: null,
  finished_at: null,
} as const;

test("a prediction has its outcome and inputs", () => {
  expect(foreseen(PREVIEW)).toMatchObject({ look: { word: "Scheduled" }, reason: null, rotationIndex: 1, due: null });
  expect(hasInputs(foreseen(PREVIEW))).toBe(true);
  expect(foreseen({ ...PREVIEW, due: "2026-11-16T08:00:12Z" }).due).toBe("2026-11-16T08:00:12Z");
});

test("a prediction has its certainty and whether it was moved", () => {
  expect(foreseen(PREVIEW)).toMatchObject({ certainty: "certain", sentence: "The occurrence will run.", moved: false });
  const moved = foreseen({ ...PREVIEW, certainty: "likely", moved: [{ kind: "jittered" } as never] });
  expect(moved).toMatchObject({ certainty: "likely", moved: true });
  expect(taken(AGENDA)).toMatchObject({ certainty: null, sentence: null, moved: false });
});

test("a predicted skip has a reason and details", () => {
  const detail = { calendar: "holidays:DE", date: "2026-12-25", text: "Christmas Day" };
  const row = foreseen({
    ...PREVIEW,
    decision: "skip",
    reason: "calendar",
    detail,
    inputs: null,
    rotation_index: null,
  });
  expect(row).toMatchObject({ look: { word: "Will skip" }, reason: "Excluded by calendar" });
  expect(row.details).toEqual(["holidays:DE · 2026-12-25 · Christmas Day"]);
  expect(hasInputs(row)).toBe(false);
});

test("a recorded decision has the state of its run", () => {
  expect(taken(AGENDA)).toMatchObject({ look: { word: "Failed" }, runId: "r" });
  expect(taken({ ...AGENDA, run_id: null, state: null, decision: "skip", reason: "missed", count: 7 })).toMatchObject({
    look: { word: "Missed" },
    count: 7,
  });
});

test("days are in the schedule's time zone", () => {
  const rows = ["2026-11-15T22:30:00Z", "2026-11-15T23:30:00Z", "2026-11-16T22:59:00Z", "2026-11-16T23:00:00Z"].map(
    (tick_at) => foreseen({ ...PREVIEW, tick_at }),
  );
  expect(ofDay(rows, "2026-11-16", "Europe/Berlin").map((row) => row.at)).toEqual([
    "2026-11-15T23:30:00Z",
    "2026-11-16T22:59:00Z",
  ]);
});

test.each([
  [{}, false],
  [[], false],
  [{ a: 1 }, true],
  ["x", true],
  [null, false],
])("inputs %j", (inputs, shown) => expect(hasInputs(foreseen({ ...PREVIEW, inputs }))).toBe(shown));
