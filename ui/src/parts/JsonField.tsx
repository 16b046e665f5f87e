// A JSON value that somebody writes: what is wrong with it stands below, while it is written.
import { TextArea } from "./Field";
import { parseJson } from "./jsonInput";

interface Props {
  label: string;
  text: string;
  onText: (text: string) => void;
  rows?: number;
  hint?: string;
  /** What the service said about it. */
  wrong?: readonly string[];
  /** Where it comes in place of the button that was pressed for it. */
  autoFocus?: boolean;
}

export function JsonField({ label, text, onText, rows = 10, hint, wrong, autoFocus }: Props) {
  const read = parseJson(text);
  return (
    <TextArea
      className="mono"
      label={label}
      autoFocus={autoFocus}
      rows={rows}
      spellCheck={false}
      autoComplete="off"
      value={text}
      hint={hint}
      wrong={read.ok ? wrong : [read.message]}
      onChange={(event) => onText(event.target.value)}
    />
  );
}
