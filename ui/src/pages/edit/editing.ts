// Context shared by the form sections: the document, its setter and its draft.
import { createContext, useContext } from "react";
import type { Schemas } from "../../api/client";
import { asText, errorsAt, getAt, type Doc, type Json, type Path } from "../../document/document";

export interface Editing {
  document: Doc;
  change: (path: Path, value: Json | undefined) => void;
  draft: Schemas["ScheduleDraft"] | undefined;
  /** Report whether the text of an input is unreadable and therefore missing from the document. */
  unread: (name: string, is: boolean) => void;
  scheduleId: string | null;
}

export const EditingContext = createContext<Editing | null>(null);

export function useEditing(): Editing {
  const editing = useContext(EditingContext);
  if (editing === null) throw new Error("used outside of the editor");
  return editing;
}

/** Return the value, setters and errors of one field. */
export function useField(...path: string[]) {
  const { document, change, draft } = useEditing();
  const value = getAt(document, path);
  return {
    value,
    text: asText(value),
    set: (next: Json | undefined) => change(path, next),
    /** Empty text removes the field, so the default applies. */
    setText: (next: string) => change(path, next === "" ? undefined : next),
    setNumber: (next: string) => change(path, next === "" || Number.isNaN(Number(next)) ? undefined : Number(next)),
    wrong: draft === undefined ? [] : errorsAt(draft.errors, path.join(".")),
  };
}
