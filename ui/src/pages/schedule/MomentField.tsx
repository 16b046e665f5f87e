// Date/time input that shows the parsed instant below.
import { TextField } from "../../parts/Field";
import { When } from "../../parts/When";
import { useMoment } from "./moment";

interface Props {
  scheduleId: string;
  zone: string;
  label: string;
  value: string;
  onChange: (text: string) => void;
  /** Errors found in the browser. */
  wrong?: readonly string[] | null;
}

export function MomentField({ scheduleId, zone, label, value, onChange, wrong }: Props) {
  const read = useMoment(scheduleId, value);
  return (
    <TextField
      label={label}
      className="mono"
      spellCheck={false}
      autoComplete="off"
      maxLength={64}
      placeholder="2026-11-16 09:00"
      value={value}
      onChange={(event) => onChange(event.target.value)}
      wrong={wrong ?? read.wrong}
      hint={
        read.at !== null ? (
          <When at={read.at} zone={zone} />
        ) : value.trim() === "" ? (
          `Date or time in ${zone}, or an offset from now such as 4h or -4h`
        ) : read.wrong ? null : (
          "Checking…"
        )
      }
    />
  );
}
