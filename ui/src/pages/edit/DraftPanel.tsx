// What the service makes of the document as it stands: words, warnings, the next fires and the days of a year.
import type { Schemas } from "../../api/client";
import { Mark } from "../../marks/Mark";
import { reasonText, WILL_FIRE, WILL_SKIP } from "../../marks/outcomes";
import { Card } from "../../parts/Page";
import { When } from "../../parts/When";
import { YearGrid } from "../../parts/YearGrid";

type Draft = Schemas["ScheduleDraft"];

export function DraftPanel({ draft, zone, busy }: { draft: Draft | undefined; zone: string; busy: boolean }) {
  if (draft === undefined) return <Card title="What it would do">{busy ? "Asking the service…" : null}</Card>;
  return (
    <Card
      title="What it would do"
      actions={busy ? <span className="spinner" role="status" aria-label="Asking the service" /> : null}
    >
      <div className="stack">
        {draft.words ? <p className="words">{draft.words}</p> : null}
        {draft.may_write ? null : <div className="note tone-warn">Your token may look at this, and not write it.</div>}
        <Errors draft={draft} />
        {draft.warnings.map((warning) => (
          <div key={warning} className="note tone-warn">
            {warning}
          </div>
        ))}
        <Fires rows={draft.fires} zone={zone} />
      </div>
    </Card>
  );
}

/** The input of a path, or of the nearest part around it that has one. */
function fieldOf(path: string): HTMLElement | null {
  const steps = path.split(/[.[]/);
  for (let length = steps.length; length > 0; length -= 1) {
    const field = document.querySelector<HTMLElement>(`[data-field="${CSS.escape(steps.slice(0, length).join("."))}"]`);
    if (field !== null) return field;
  }
  return null;
}

function Errors({ draft }: { draft: Draft }) {
  const errors = Object.entries(draft.errors);
  if (errors.length === 0) return null;
  const find = (path: string) => {
    const field = fieldOf(path);
    (field?.matches("fieldset") ? (field.querySelector<HTMLElement>("input") ?? field) : field)?.focus();
  };
  return (
    <div className="note tone-bad" role="alert">
      <ul className="plain stack">
        {errors.map(([path, texts]) => (
          <li key={path}>
            <button type="button" className="link-button mono" onClick={() => find(path)}>
              {path}
            </button>
            : {texts.join(" · ")}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Fires({ rows, zone }: { rows: Draft["fires"]; zone: string }) {
  if (rows.length === 0) return <p className="muted">No occurrence ahead.</p>;
  return (
    <ol className="plain fires">
      {rows.map((row) => (
        <li key={row.tick_at} className="row">
          <Mark look={row.decision === "dispatch" ? WILL_FIRE : WILL_SKIP} />
          <When at={row.tick_at} zone={zone} />
          {row.reason ? <span className="small muted">skipped: {reasonText(row.reason)}</span> : null}
        </li>
      ))}
    </ol>
  );
}

export function DraftYear({ draft }: { draft: Draft | undefined }) {
  const year = draft?.year;
  if (!year) return null;
  return (
    <Card title={`The days of ${year.year}`}>
      <YearGrid
        year={year.year}
        days={year.days}
        bounded={year.bounded}
        label={`Fires of this draft in ${year.year}`}
      />
    </Card>
  );
}
