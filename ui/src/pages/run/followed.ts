// A growing log: the lines kept in the page and their text.
import type { Schemas } from "../../api/client";

export type LogLine = Schemas["RunLogLine"];

export interface Followed {
  lines: readonly LogLine[];
  /** The number of the last line that is known. */
  after: number;
  ended: boolean;
}

export const NOTHING_LOGGED: Followed = { lines: [], after: 0, ended: false };
// The maximum number of lines in the page. Older lines are removed.
export const MOST_LINES = 2_000;

export function followed(kept: Followed, answer: Schemas["RunLogs"]): Followed {
  const fresh = answer.lines.filter((line) => line.number > kept.after);
  if (fresh.length === 0 && answer.ended === kept.ended) return kept;
  const all = [...kept.lines, ...fresh];
  const over = Math.max(0, all.length - MOST_LINES);
  return {
    lines: over === 0 ? all : all.slice(over),
    after: fresh.length === 0 ? kept.after : fresh[fresh.length - 1]!.number,
    ended: answer.ended,
  };
}

/** Count the missing lines before a line. Lines are numbered from 1. */
export function missingBefore(lines: readonly LogLine[], index: number): number {
  return lines[index]!.number - (lines[index - 1]?.number ?? 0) - 1;
}

// Terminal control sequences (ECMA-48).
// eslint-disable-next-line no-control-regex -- the sequences begin with a control character
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])/g;
// eslint-disable-next-line no-control-regex -- all but the tab
const UNSEEN = /[\u0000-\u0008\u000a-\u001f\u007f]/g;
const LONGEST = 4_000;

/** Return the last text of a line that was overwritten with carriage returns, such as a progress bar. */
function overwritten(text: string): string {
  return text.includes("\r") ? (text.split("\r").findLast((part) => part !== "") ?? "") : text;
}

/** Replace a control character with its visible symbol. */
function pictured(unseen: string): string {
  const code = unseen.charCodeAt(0);
  return String.fromCharCode(code === 0x7f ? 0x2421 : 0x2400 + code);
}

export function lineText(text: string): string {
  const plain = overwritten(text.replace(ESCAPES, "")).replace(UNSEEN, pictured);
  return plain.length <= LONGEST ? plain : `${plain.slice(0, LONGEST)} … ${plain.length - LONGEST} more characters`;
}
