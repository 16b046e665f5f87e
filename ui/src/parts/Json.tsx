// A JSON value as text, and a line-by-line diff of two values.
import { useMemo } from "react";

const MOST_CHARACTERS = 200_000;

/** The complete value as text, for editing. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "null";
}

/** The value as text, truncated for display. */
export function shownText(value: unknown): string {
  const text = typeof value === "string" ? value : jsonText(value);
  return text.length > MOST_CHARACTERS
    ? `${text.slice(0, MOST_CHARACTERS)}\n… ${text.length - MOST_CHARACTERS} more characters`
    : text;
}

export function Json({ value, label }: { value: unknown; label: string }) {
  return (
    <pre className="json" tabIndex={0} aria-label={label}>
      {shownText(value)}
    </pre>
  );
}

/** Strings have quotes here, so that they differ from numbers. */
function documentText(value: unknown): string {
  return shownText(jsonText(value));
}

export type DiffLine = readonly [kind: "same" | "added" | "removed" | "left out", text: string];

const MOST_LINES = 2_000;

/** Skip the equal lines at both ends first: they are cheap to find and usually most of the text. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [old, fresh] = [before.split("\n"), after.split("\n")];
  const shorter = Math.min(old.length, fresh.length);
  let head = 0;
  while (head < shorter && old[head] === fresh[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail += 1;
  const same = (lines: readonly string[]) => lines.map((text) => ["same", text] as const);
  return [
    ...same(old.slice(0, head)),
    ...between(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail)),
    ...same(old.slice(old.length - tail)),
  ];
}

/** Keep the longest common lines; the rest is removed or added. A large text is shown as replaced, truncated. */
function between(old: readonly string[], fresh: readonly string[]): DiffLine[] {
  if (old.length > MOST_LINES || fresh.length > MOST_LINES) {
    return [
      ...beginning(old).map((text) => ["removed", text] as const),
      ...beginning(fresh).map((text) => ["added", text] as const),
    ];
  }
  const width = fresh.length + 1;
  const common = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = fresh.length - 1; j >= 0; j -= 1) {
      common[i * width + j] =
        old[i] === fresh[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      lines.push(["same", old[i]!]);
      i += 1;
      j += 1;
    } else if (i < old.length && (j >= fresh.length || common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) {
      lines.push(["removed", old[i]!]);
      i += 1;
    } else {
      lines.push(["added", fresh[j]!]);
      j += 1;
    }
  }
  return lines;
}

function beginning(lines: readonly string[]): readonly string[] {
  const over = lines.length - MOST_LINES;
  return over > 0 ? [...lines.slice(0, MOST_LINES), `… ${over} more lines`] : lines;
}

const AROUND = 3;

/** The changed lines with a few lines of context. */
export function folded(lines: readonly DiffLine[]): DiffLine[] {
  const near = new Set<number>();
  lines.forEach(([kind], at) => {
    if (kind !== "same") for (let each = at - AROUND; each <= at + AROUND; each += 1) near.add(each);
  });
  const kept: DiffLine[] = [];
  for (let at = 0; at < lines.length;) {
    let end = at;
    while (end < lines.length && !near.has(end)) end += 1;
    if (end - at > 1) kept.push(["left out", `… ${end - at} unchanged lines`]);
    else if (end > at) kept.push(lines[at]!);
    if (end < lines.length) kept.push(lines[end]!);
    at = end + 1;
  }
  return kept;
}

const SIGNS = { same: " ", added: "+", removed: "−", "left out": " " } as const;
const SAID: ReadonlySet<DiffLine[0]> = new Set(["added", "removed"]);

export function JsonDiff({ before, after, label }: { before: unknown; after: unknown; label: string }) {
  const lines = useMemo(() => folded(diffLines(documentText(before), documentText(after))), [before, after]);
  return (
    <div className="json" tabIndex={0} role="group" aria-label={label}>
      {lines.map(([kind, text], index) => (
        <div key={index} className={`diff-line ${kind === "left out" ? "muted" : kind}`}>
          <span aria-hidden="true">{SIGNS[kind]}</span>
          <span>
            {SAID.has(kind) ? <span className="visually-hidden">{kind}: </span> : null}
            {text}
          </span>
        </div>
      ))}
    </div>
  );
}
