// The labels and the evidence of the checks behind a decision.
import type { Schemas } from "../api/client";
import { HELD, MISSED, SKIPPED, WILL_FIRE, WILL_SKIP, type Look } from "../marks/outcomes";
import { capitalised, CHECK_ANSWERS, CHECKS, EXPLAINED, RUN_STATES } from "../words";

/** Return the label of a check, or its name if it is unknown here. */
export function questionText(question: string): string {
  return CHECKS[question] ?? question.replaceAll("_", " ");
}

export type Answered = (typeof CHECK_ANSWERS)[keyof typeof CHECK_ANSWERS];

export function answered(holds: boolean | null): Answered {
  return holds === null ? CHECK_ANSWERS.notEvaluated : holds ? CHECK_ANSWERS.yes : CHECK_ANSWERS.no;
}

export const ANSWER_LOOKS: Record<Answered, Look> = {
  [CHECK_ANSWERS.yes]: { word: CHECK_ANSWERS.yes, tone: "ok", shape: "disc" },
  [CHECK_ANSWERS.no]: { word: CHECK_ANSWERS.no, tone: "bad", shape: "alert" },
  [CHECK_ANSWERS.notEvaluated]: { word: CHECK_ANSWERS.notEvaluated, tone: "quiet", shape: "dash" },
};

export const OUTCOME_LOOKS: Record<Schemas["ExplainedOutcome"], Look> = {
  fires: WILL_FIRE,
  skips: WILL_SKIP,
  nothing: { word: EXPLAINED.nothing, tone: "quiet", shape: "dash" },
  // Not "ok": the decision was to fire, but the run may have failed. Its state has its own badge.
  fired: { word: EXPLAINED.fired, tone: "info", shape: "dot" },
  held: HELD,
  skipped: SKIPPED,
  missed: MISSED,
  covered: { word: EXPLAINED.covered, tone: "info", shape: "disc" },
  recorded: { word: EXPLAINED.recorded, tone: "info", shape: "dot" },
};

/** For an instant before the creation of the schedule. */
export const NOT_CREATED: Look = { word: "Not created yet", tone: "quiet", shape: "dash" };

const MOST_LINES = 12;
const MOST_CHARACTERS = 400;

/** Return the evidence of a check as lines; a field without its own text is shown as name and value. */
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
    return `Cron ${plain(part["cron"])} at ${plain(part["local_time"])} ${plain(part["timezone"])}: no match in ${failed}`;
  }
  if (part["every"] !== undefined)
    return `Every ${plain(part["every"])}: ${plain(part["seconds_past"])} s after the previous one`;
  return part["next"] == null ? "One-time runs: none left" : `One-time runs: next at ${plain(part["next"])}`;
}

function conditionLines(detail: Fields): string[] {
  const failed =
    detail["signal_error"] === undefined ? [] : [`Signal request failed: ${plain(detail["signal_error"])}`];
  const clauses = listOf(detail["clauses"]).map((each) => {
    const seen = each["found"] === false ? "not found" : `actual: ${plain(each["value"])}`;
    return `${each["holds"] ? "Met" : "Not met"}: ${plain(each["pointer"])} ${plain(each["operator"])} ${plain(each["operand"])} (${seen})`;
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
  const runs = Array.isArray(ids) && ids.length > 0 ? [`Active runs: ${ids.map(plain).join(", ")}`] : [];
  return [...named(rest), ...runs];
}

function named(detail: Fields): string[] {
  return Object.entries(detail)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${fieldText(name)}: ${plain(value)}`);
}

// Fields whose names are not labels.
const FIELD_TEXTS: Readonly<Record<string, string>> = { held: RUN_STATES.held, runs_born: "Runs created" };

function fieldText(name: string): string {
  return Object.hasOwn(FIELD_TEXTS, name) ? FIELD_TEXTS[name]! : capitalised(name.replaceAll("_", " "));
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

/** Split a sentence at its UTC instants and run ids, which are shown as local times and links. */
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
