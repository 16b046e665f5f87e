// An input for a JSON value that shows syntax errors while the user types.
import { TextArea } from "./Field";
import { parseJson } from "./jsonInput";

interface Props {
  label: string;
  text: string;
  onText: (text: string) => void;
  rows?: number;
  hint?: string;
  /** The error that the service returned. */
  wrong?: readonly string[];
  /** Set if the field replaces the button that was pressed. */
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
