// A log that grows while it is read: what is kept of it, and how a line is written; pure.
import type { Schemas } from "../../api/client";

export type LogLine = Schemas["RunLogLine"];

export interface Followed {
  lines: readonly LogLine[];
  /** The number of the last line that is known. */
  after: number;
  /** How many lines at the beginning are not shown any more. */
  dropped: number;
  ended: boolean;
}

export const NOTHING_LOGGED: Followed = { lines: [], after: 0, dropped: 0, ended: false };
// As many lines stand in the page; older ones make room.
export const MOST_LINES = 2_000;

export function followed(kept: Followed, answer: Schemas["RunLogs"]): Followed {
  const fresh = answer.lines.filter((line) => line.number > kept.after);
  if (fresh.length === 0 && answer.ended === kept.ended) return kept;
  const all = [...kept.lines, ...fresh];
  const over = Math.max(0, all.length - MOST_LINES);
  return {
    lines: over === 0 ? all : all.slice(over),
    after: fresh.length === 0 ? kept.after : fresh[fresh.length - 1]!.number,
    dropped: kept.dropped + over,
    ended: answer.ended,
  };
}

// Colours of a terminal mean nothing here.
// eslint-disable-next-line no-control-regex -- the sequences begin with a control character
const ESCAPES = /\u001b\[[0-9;?]*[A-Za-z]/g;
const LONGEST = 4_000;

export function lineText(text: string): string {
  const plain = text.replace(ESCAPES, "");
  return plain.length <= LONGEST ? plain : `${plain.slice(0, LONGEST)} … ${plain.length - LONGEST} characters more`;
}
