// A labelled input with its hint and error, connected for screen readers.
import { useId, type ComponentProps, type ReactNode } from "react";

interface Around {
  label: string;
  hint?: ReactNode;
  wrong?: readonly string[] | null;
  /** The label is visually hidden. */
  bare?: boolean;
}

function Frame({ id, label, hint, wrong, bare, children }: Around & { id: string; children: ReactNode }) {
  return (
    <div className="field">
      <label htmlFor={id} className={bare ? "visually-hidden" : undefined}>
        {label}
      </label>
      {children}
      {hint ? (
        <div className="hint" id={`${id}-hint`}>
          {hint}
        </div>
      ) : null}
      {wrong?.length ? (
        <div className="wrong" id={`${id}-wrong`} role="alert">
          {wrong.join(" · ")}
        </div>
      ) : null}
    </div>
  );
}

function described(id: string, { hint, wrong }: Around) {
  const ids = [hint ? `${id}-hint` : "", wrong?.length ? `${id}-wrong` : ""].filter(Boolean).join(" ");
  return { id, "aria-describedby": ids || undefined, "aria-invalid": wrong?.length ? true : undefined } as const;
}

export function TextField({ label, hint, wrong, bare, ...rest }: Around & ComponentProps<"input">) {
  const id = useId();
  const around = { label, hint, wrong, bare };
  return (
    <Frame id={id} {...around}>
      <input {...rest} {...described(id, around)} className={`input ${rest.className ?? ""}`} />
    </Frame>
  );
}

export function TextArea({ label, hint, wrong, bare, ...rest }: Around & ComponentProps<"textarea">) {
  const id = useId();
  const around = { label, hint, wrong, bare };
  return (
    <Frame id={id} {...around}>
      <textarea {...rest} {...described(id, around)} className={`input ${rest.className ?? ""}`} />
    </Frame>
  );
}

export type Choice = readonly [value: string, text: string];

/** Show a value that is none of the choices as it is, instead of preselecting the first choice. */
export function SelectField({
  label,
  hint,
  wrong,
  bare,
  choices,
  ...rest
}: Around & ComponentProps<"select"> & { choices: readonly Choice[] }) {
  const id = useId();
  const around = { label, hint, wrong, bare };
  const value = rest.value === undefined ? undefined : String(rest.value);
  const isKnown = value === undefined || choices.some(([each]) => each === value);
  return (
    <Frame id={id} {...around}>
      <select {...rest} {...described(id, around)} className={`input ${rest.className ?? ""}`}>
        {choices.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
        {isKnown ? null : <option value={value}>{value}</option>}
      </select>
    </Frame>
  );
}

export function CheckField({ label, ...rest }: { label: ReactNode } & ComponentProps<"input">) {
  return (
    <label className="check">
      <input type="checkbox" {...rest} />
      <span>{label}</span>
    </label>
  );
}
