// A JSON value as text, and what differs between two of them, line by line.
import { useMemo } from "react";

const MOST_CHARACTERS = 200_000;

/** The whole of it, to be edited. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "null";
}

/** As much of it as anybody reads. */
export function shownText(value: unknown): string {
  const text = typeof value === "string" ? value : jsonText(value);
  return text.length > MOST_CHARACTERS
    ? `${text.slice(0, MOST_CHARACTERS)}\n… ${text.length - MOST_CHARACTERS} characters more`
    : text;
}

export function Json({ value, label }: { value: unknown; label: string }) {
  return (
    <pre className="json" tabIndex={0} aria-label={label}>
      {shownText(value)}
    </pre>
  );
}

/** A text of a document has quotes here, so that it is told from a number. */
function documentText(value: unknown): string {
  return shownText(jsonText(value));
}

export type DiffLine = readonly [kind: "same" | "added" | "removed", text: string];

const MOST_LINES = 2_000;

/** The longest common lines stay, the rest was removed or added. Of larger texts, the beginnings are shown as replaced. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [old, fresh] = [before.split("\n"), after.split("\n")];
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
  return over > 0 ? [...lines.slice(0, MOST_LINES), `… ${over} lines more`] : lines;
}

const SIGNS = { same: " ", added: "+", removed: "−" } as const;

export function JsonDiff({ before, after, label }: { before: unknown; after: unknown; label: string }) {
  const lines = useMemo(() => diffLines(documentText(before), documentText(after)), [before, after]);
  return (
    <div className="json" tabIndex={0} role="group" aria-label={label}>
      {lines.map(([kind, text], index) => (
        <div key={index} className={`diff-line ${kind}`}>
          <span aria-hidden="true">{SIGNS[kind]}</span>
          <span>
            {kind === "same" ? null : <span className="visually-hidden">{kind}: </span>}
            {text}
          </span>
        </div>
      ))}
    </div>
  );
}
