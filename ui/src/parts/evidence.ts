// What the questions behind a decision ask, in words, and what was seen when they were answered.
import type { Schemas } from "../api/client";
import { HELD, MISSED, SKIPPED, WILL_FIRE, WILL_SKIP, type Look } from "../marks/outcomes";

const QUESTIONS: Partial<Record<string, readonly [question: string, subject: string]>> = {
  spec: ["Is it one of the schedule's times?", "times"],
  status_not_triggerable: ["Is the schedule active?", "status"],
  outside_window: ["Is it between its start and its end?", "start and end"],
  remaining_actions_exhausted: ["Has it runs left?", "runs left"],
  native_scheduler: ["Does the service keep its time, not the agent?", "the agent's own time"],
  calendar: ["Do its calendars leave the day open?", "calendars"],
  condition_failed: ["Does its condition hold?", "condition"],
  budget_exceeded: ["Is there budget left?", "budget"],
  daily_limit_reached: ["Is there room under the limit of the day?", "limit of the day"],
  cycle_detected: ["Is the workflow free of cycles?", "cycles of the workflow"],
  not_the_owner: ["Does the workflow still belong to the same owner?", "owner of the workflow"],
  quota_exceeded: ["Is there room in the quota of the namespace?", "quota"],
  overlap: ["Is there room beside the runs before it?", "overlap"],
};

/** A question that we do not know is shown by its name. */
export function questionText(question: string): string {
  return QUESTIONS[question]?.[0] ?? `${question.replaceAll("_", " ")}?`;
}

/** What it is about, in a word or two. */
export function subjectText(question: string): string {
  return QUESTIONS[question]?.[1] ?? question.replaceAll("_", " ");
}

export type Answered = "yes" | "no" | "not asked";

export function answered(holds: boolean | null): Answered {
  return holds === null ? "not asked" : holds ? "yes" : "no";
}

export const ANSWER_LOOKS: Record<Answered, Look> = {
  yes: { word: "yes", tone: "ok", shape: "disc" },
  no: { word: "no", tone: "bad", shape: "alert" },
  "not asked": { word: "not asked", tone: "quiet", shape: "dash" },
};

export const OUTCOME_LOOKS: Record<Schemas["ExplainedOutcome"], Look> = {
  fires: WILL_FIRE,
  skips: WILL_SKIP,
  nothing: { word: "nothing happens", tone: "quiet", shape: "dash" },
  // What became of its run is told beside it: that it was decided to fire does not mean that all went well.
  fired: { word: "fired", tone: "info", shape: "dot" },
  held: HELD,
  skipped: SKIPPED,
  missed: MISSED,
  covered: { word: "covered by another run", tone: "info", shape: "disc" },
  recorded: { word: "recorded", tone: "info", shape: "dot" },
};

/** For an instant of before the creation. */
export const NOT_CREATED: Look = { word: "not created yet", tone: "quiet", shape: "dash" };

const MOST_LINES = 12;
const MOST_CHARACTERS = 400;

/** Each line is one thing that was seen; whatever has no sentence of its own is shown as name and value. */
export function evidence(question: string, detail: unknown): string[] {
  const lines = isObject(detail) ? linesOf(question, detail) : detail == null ? [] : [plain(detail)];
  const cut = lines.map((line) => (line.length > MOST_CHARACTERS ? `${line.slice(0, MOST_CHARACTERS)}…` : line));
  return cut.length > MOST_LINES ? [...cut.slice(0, MOST_LINES), `and ${cut.length - MOST_LINES} more`] : cut;
}

type Fields = Record<string, unknown>;

function linesOf(question: string, detail: Fields): string[] {
  if (question === "spec") return listOf(detail["parts"]).map(partLine);
  if (question === "condition_failed") return conditionLines(detail);
  if (question === "calendar") return [calendarLine(detail)];
  if (question === "overlap") return overlapLines(detail);
  return named(detail);
}

function partLine(part: Fields): string {
  if (part["cron"] !== undefined) {
    const failed = Array.isArray(part["failed"]) ? part["failed"].map(plain).join(", ") : "";
    return `cron ${plain(part["cron"])} at ${plain(part["local_time"])} ${plain(part["timezone"])}: no match in ${failed}`;
  }
  if (part["every"] !== undefined)
    return `every ${plain(part["every"])}: ${plain(part["seconds_past"])} s after the one before`;
  return part["next"] == null ? "one-off: none is left" : `one-off: the next is at ${plain(part["next"])}`;
}

function conditionLines(detail: Fields): string[] {
  const failed =
    detail["signal_error"] === undefined ? [] : [`the signal could not be asked: ${plain(detail["signal_error"])}`];
  const clauses = listOf(detail["clauses"]).map((each) => {
    const seen = each["found"] === false ? "nothing is there" : `it is ${plain(each["value"])}`;
    return `${each["holds"] ? "holds" : "does not hold"}: ${plain(each["pointer"])} ${plain(each["operator"])} ${plain(each["operand"])} (${seen})`;
  });
  return [...failed, ...clauses];
}

function calendarLine(detail: Fields): string {
  const texts = [detail["calendar"], detail["date"], detail["text"] ?? detail["kind"]];
  return texts
    .filter((each) => each != null && each !== "")
    .map(plain)
    .join(" · ");
}

function overlapLines(detail: Fields): string[] {
  const { active_run_ids: ids, ...rest } = detail;
  const runs = Array.isArray(ids) && ids.length > 0 ? [`active runs: ${ids.map(plain).join(", ")}`] : [];
  return [...named(rest), ...runs];
}

function named(detail: Fields): string[] {
  return Object.entries(detail)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${plain(value)}`);
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function plain(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

export type SentencePart = { text: string } | { at: string } | { run: string };

// An instant, or the id of a run: 26 characters of Crockford's base 32.
const TOLD = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z|\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b/g;

/** The service writes instants in UTC and runs by their ids; here they are taken out, to be shown to those who read. */
export function sentenceParts(sentence: string): SentencePart[] {
  const parts: SentencePart[] = [];
  let last = 0;
  for (const found of sentence.matchAll(TOLD)) {
    const isRun = !found[0].includes(":");
    if (!isRun && Number.isNaN(Date.parse(found[0]))) continue;
    if (found.index > last) parts.push({ text: sentence.slice(last, found.index) });
    parts.push(isRun ? { run: found[0] } : { at: found[0] });
    last = found.index + found[0].length;
  }
  if (last < sentence.length) parts.push({ text: sentence.slice(last) });
  return parts;
}
