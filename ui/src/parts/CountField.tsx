// The number of objects, typed before many of them are deleted.
import { useState, type ReactNode } from "react";
import { TextField } from "./Field";

/** Accept the digits with or without separators of thousands. */
export function isCount(text: string, count: number): boolean {
  return text.replace(/[\s,]/g, "") === String(count);
}

/** One object, or none, needs no number. */
export function useCountField(count: number): { field: ReactNode; matches: boolean } {
  const [text, setText] = useState("");
  if (count < 2) return { field: null, matches: true };
  const field = (
    <TextField
      label={`Enter ${count} to confirm`}
      inputMode="numeric"
      autoComplete="off"
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  );
  return { field, matches: isCount(text, count) };
}
