// What the sections of the form share: the document, how to change it, and what the service says of it.
import { createContext, useContext } from "react";
import type { Schemas } from "../../api/client";
import { asText, errorsAt, getAt, type Doc, type Json, type Path } from "../../document/document";

export interface Editing {
  document: Doc;
  change: (path: Path, value: Json | undefined) => void;
  draft: Schemas["ScheduleDraft"] | undefined;
  /** Whether what stands in this input cannot be read, and so is no part of the document. */
  unread: (name: string, is: boolean) => void;
  scheduleId: string | null;
}

export const EditingContext = createContext<Editing | null>(null);

export function useEditing(): Editing {
  const editing = useContext(EditingContext);
  if (editing === null) throw new Error("used outside of the editor");
  return editing;
}

/** One field: its value as text, how to set it, and what is wrong with it. */
export function useField(...path: string[]) {
  const { document, change, draft } = useEditing();
  const value = getAt(document, path);
  return {
    value,
    text: asText(value),
    set: (next: Json | undefined) => change(path, next),
    /** An empty text takes the field away: the service's default holds then. */
    setText: (next: string) => change(path, next === "" ? undefined : next),
    setNumber: (next: string) => change(path, next === "" || Number.isNaN(Number(next)) ? undefined : Number(next)),
    wrong: draft === undefined ? [] : errorsAt(draft.errors, path.join(".")),
  };
}
