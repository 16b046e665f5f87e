// A confirmation field: the user enters the number of objects to delete.
import { useState, type ReactNode } from "react";
import { TextField } from "./Field";

/** Accept the digits with or without separators of thousands. */
export function isCount(text: string, count: number): boolean {
  return text.replace(/[\s,]/g, "") === String(count);
}

/** No confirmation is needed for fewer than two objects. */
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
