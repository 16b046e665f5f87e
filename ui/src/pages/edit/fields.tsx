// Inputs that are bound to a field of the document.
import { useEffect, useId, useState, type ReactNode } from "react";
import { readJson } from "../../api/json";
import { Button } from "../../parts/Button";
import { SelectField, TextArea, TextField, type Choice } from "../../parts/Field";
import { useEditing, useField } from "./editing";
import { isObject, type Json } from "../../document/document";
import { inSentence } from "../../words";

interface Common {
  path: readonly string[];
  label: string;
  hint?: ReactNode;
  mono?: boolean;
  required?: boolean;
}

export function Text({
  path,
  label,
  hint,
  mono,
  required,
  placeholder,
  list,
}: Common & { placeholder?: string; list?: string }) {
  const field = useField(...path);
  return (
    <TextField
      label={label}
      hint={hint}
      wrong={field.wrong}
      value={field.text}
      required={required}
      placeholder={placeholder}
      list={list}
      spellCheck={mono ? false : undefined}
      className={mono ? "mono" : undefined}
      data-field={path.join(".")}
      onChange={(event) => field.setText(event.target.value)}
    />
  );
}

export function LongText({ path, label, hint, rows = 4 }: Common & { rows?: number }) {
  const field = useField(...path);
  return (
    <TextArea
      label={label}
      hint={hint}
      wrong={field.wrong}
      rows={rows}
      value={field.text}
      data-field={path.join(".")}
      onChange={(event) => field.setText(event.target.value)}
    />
  );
}

export function NumberText({ path, label, hint, min }: Common & { min?: number }) {
  const field = useField(...path);
  return (
    <TextField
      label={label}
      hint={hint}
      wrong={field.wrong}
      type="number"
      min={min}
      step="any"
      value={field.text}
      data-field={path.join(".")}
      onChange={(event) => field.setNumber(event.target.value)}
    />
  );
}

/** The first choice is the default. */
export function Choose({ path, label, hint, choices }: Common & { choices: readonly Choice[] }) {
  const field = useField(...path);
  return (
    <SelectField
      label={label}
      hint={hint}
      wrong={field.wrong}
      choices={choices}
      value={field.text || choices[0]![0]}
      data-field={path.join(".")}
      onChange={(event) => field.set(event.target.value)}
    />
  );
}

export function YesNo({ path, label }: { path: readonly string[]; label: string }) {
  const field = useField(...path);
  return (
    <label className="check">
      <input
        type="checkbox"
        checked={field.value === true}
        data-field={path.join(".")}
        onChange={(event) => field.set(event.target.checked || undefined)}
      />
      <span>{label}</span>
    </label>
  );
}

const ANSWERS: Readonly<Record<string, boolean>> = { yes: true, no: false };

/** Choice of yes, no, or inherited; `otherwise` is the label of the inherited value. */
export function YesNoOtherwise({ path, label, otherwise, hint }: Common & { otherwise: string }) {
  const field = useField(...path);
  const isSaid = typeof field.value === "boolean";
  return (
    <SelectField
      label={label}
      hint={hint}
      wrong={field.wrong}
      choices={[
        ["", otherwise],
        ["yes", "Yes"],
        ["no", "No"],
      ]}
      value={isSaid ? (field.value === true ? "yes" : "no") : field.text}
      data-field={path.join(".")}
      onChange={(event) => field.set(ANSWERS[event.target.value])}
    />
  );
}

/** List of texts, one input each. */
export function TextList({
  path,
  label,
  hint,
  mono,
  placeholder,
  list,
  add = "Add",
}: Common & { placeholder?: string; list?: string; add?: string }) {
  const field = useField(...path);
  const id = useId();
  const item = label.replace(/s$/, "");
  const texts = Array.isArray(field.value)
    ? field.value.map((each) => (typeof each === "string" ? each : JSON.stringify(each)))
    : [];
  const put = (next: string[]) => field.set(next.length === 0 ? undefined : next);
  return (
    <fieldset
      className="field plain-fieldset"
      data-field={path.join(".")}
      aria-describedby={hint ? `${id}-hint` : undefined}
    >
      <legend className="field-label">{label}</legend>
      {texts.map((text, index) => (
        <div className="row nowrap-row" key={index}>
          <input
            className={mono ? "input mono grow" : "input grow"}
            aria-label={`${item} ${index + 1}`}
            aria-invalid={field.wrong.length > 0 || undefined}
            spellCheck={false}
            list={list}
            placeholder={placeholder}
            value={text}
            onChange={(event) => put(texts.map((each, place) => (place === index ? event.target.value : each)))}
          />
          <Button
            small
            kind="quiet"
            aria-label={`Remove ${inSentence(item)} ${index + 1}`}
            onClick={() => put(texts.filter((_, place) => place !== index))}
          >
            ×
          </Button>
        </div>
      ))}
      <div>
        <Button small onClick={() => put([...texts, ""])}>
          {add}
        </Button>
      </div>
      {hint ? (
        <div className="hint" id={`${id}-hint`}>
          {hint}
        </div>
      ) : null}
      {field.wrong.length > 0 ? (
        <div className="wrong" role="alert">
          {field.wrong.join(" · ")}
        </div>
      ) : null}
    </fieldset>
  );
}

/** JSON input; invalid text stays in the input and is not applied. */
export function JsonField({
  path,
  label,
  hint,
  rows = 5,
  kind = "object",
}: Common & { rows?: number; kind?: "object" | "any" }) {
  const field = useField(...path);
  const shown = field.value === undefined ? "" : JSON.stringify(field.value, null, 2);
  const [typed, setTyped] = useState<string | null>(null);
  const [broken, setBroken] = useState<string | null>(null);
  const { unread } = useEditing();
  const name = path.join(".");
  useEffect(() => {
    unread(name, broken !== null);
    return () => unread(name, false);
  }, [unread, name, broken]);
  const take = (text: string) => {
    setTyped(text);
    if (text.trim() === "") {
      setBroken(null);
      field.set(undefined);
      return;
    }
    try {
      const value = readJson(text) as Json;
      if (kind === "object" && !isObject(value)) throw new Error("Must be a JSON object");
      setBroken(null);
      field.set(value);
    } catch (wrong) {
      setBroken(wrong instanceof Error ? wrong.message : "Invalid JSON");
    }
  };
  return (
    <TextArea
      label={label}
      hint={hint}
      wrong={broken ? [broken] : field.wrong}
      rows={rows}
      className="mono"
      spellCheck={false}
      value={typed ?? shown}
      data-field={name}
      onChange={(event) => take(event.target.value)}
      onBlur={() => {
        if (broken === null) setTyped(null);
      }}
    />
  );
}
