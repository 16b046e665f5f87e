// Labels of buttons, empty values and messages that several pages share.
export const CANCEL = "Cancel";
export const CLOSE = "Close";
export const CREATE = "Create";
export const DELETE = "Delete";
export const EDIT = "Edit";
export const SAVE = "Save";
export const DISCARD = "Discard";
export const PREVIEW = "Preview";
export const PREVIOUS = "Previous";
export const NEXT = "Next";
export const RERUN = "Rerun";
export const OPTIONAL = "Optional";

export const NONE = "None";
export const NO_LIMIT = "No limit";
export const YES = "Yes";
export const NO = "No";

export const READ_ONLY = "Read-only access";

/** Messages after a write. */
export const created = (name: string) => `${name} created`;
export const saved = (name: string) => `${name} saved`;
export const deleted = (name: string) => `${name} deleted`;
export const resumed = (name: string) => `${name} resumed`;

/** Begin a text with a capital letter. */
export const capitalised = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** Return "1 run" or "1,234 runs". */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en-GB")} ${count === 1 ? one : many}`;
}
