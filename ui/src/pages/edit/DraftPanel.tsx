// Preview of the draft: description, errors, warnings, upcoming runs and the days of a year.
import type { Schemas } from "../../api/client";
import { isObject } from "../../document/document";
import { Mark } from "../../marks/Mark";
import { reasonText, WILL_FIRE, WILL_SKIP } from "../../marks/outcomes";
import { Json } from "../../parts/Json";
import { Card } from "../../parts/Page";
import { Table } from "../../parts/Table";
import { fullText, shortText, zoneLabel } from "../../parts/When";
import { YearGrid } from "../../parts/YearGrid";
import { useNow } from "../../time/now";
import { instant, offsetText, relativeText, sameClock, useViewerZone } from "../../time/zones";

type Draft = Schemas["ScheduleDraft"];

export function DraftPanel({ draft, zone, busy }: { draft: Draft | undefined; zone: string; busy: boolean }) {
  if (draft === undefined) return <Card title="Preview">{busy ? "Loading preview…" : null}</Card>;
  return (
    <Card
      title="Preview"
      actions={busy ? <span className="spinner" role="status" aria-label="Loading preview" /> : null}
    >
      <div className="stack">
        {draft.words ? <p className="words">{draft.words}</p> : null}
        {draft.may_write ? null : (
          <div className="note tone-warn">Read-only access: your token cannot save this schedule.</div>
        )}
        <Errors draft={draft} />
        {draft.warnings.map((warning) => (
          <div key={warning} className="note tone-warn">
            {warning}
          </div>
        ))}
        <Fires rows={draft.fires} zone={zone} />
        <Rendered draft={draft} zone={zone} />
      </div>
    </Card>
  );
}

/** Return the input of a path, or of its nearest ancestor that has one. */
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

/** One line per occurrence; time zones in the heading, an offset where it changes. */
function Fires({ rows, zone }: { rows: Draft["fires"]; zone: string }) {
  const now = useNow();
  const viewer = useViewerZone();
  if (rows.length === 0) return <p className="muted">No upcoming runs.</p>;
  const differs = rows.some((row) => !sameClock(row.tick_at, zone, viewer));
  const zones = differs ? [zone, viewer] : [zone];
  return (
    <Table
      frame={{ className: "fires-frame" }}
      className="fires"
      caption="Upcoming runs"
      head={{ className: differs ? undefined : "visually-hidden" }}
      heads={["", ...zones.map((each) => ({ id: each, text: zoneLabel(rows[0]!.tick_at, each) })), ""]}
    >
      {rows.map((row, index) => (
        <tr key={row.tick_at}>
          <td>
            <Mark look={row.decision === "dispatch" ? WILL_FIRE : WILL_SKIP} />
          </td>
          {zones.map((each) => (
            <td key={each} className="nowrap">
              <time dateTime={row.tick_at} title={fullText(row.tick_at, zone, viewer)}>
                {shortText(row.tick_at, each, now)}
              </time>
              {turns(rows, index, each) ? (
                <span className="zone"> {offsetText(instant(row.tick_at), each)}</span>
              ) : null}
            </td>
          ))}
          <td className="small muted">
            <span className="nowrap">{relativeText(row.tick_at, now)}</span>
            {row.reason ? <div>Skipped: {reasonText(row.reason)}</div> : null}
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** Rendered prompt and input of the next run of a template action. */
function Rendered({ draft, zone }: { draft: Draft; zone: string }) {
  const now = useNow();
  const row = draft.fires.find((each) => each.decision === "dispatch");
  const action = draft.document?.["action"];
  if (row === undefined || !isObject(action) || action["template"] !== true) return null;
  return (
    <section className="stack" aria-label="Rendered template">
      <h3>Rendered for the run at {shortText(row.tick_at, zone, now)}</h3>
      {row.prompt ? (
        <pre className="json" tabIndex={0} aria-label="Rendered prompt" dir="auto">
          {row.prompt}
        </pre>
      ) : null}
      {row.inputs ? <Json value={row.inputs} label="Rendered input" /> : null}
    </section>
  );
}

/** Return whether the UTC offset differs from that of the previous occurrence. */
function turns(rows: Draft["fires"], index: number, zone: string): boolean {
  const offset = (row: Draft["fires"][number]) => offsetText(instant(row.tick_at), zone);
  return index > 0 && offset(rows[index]!) !== offset(rows[index - 1]!);
}

export function DraftYear({ draft }: { draft: Draft | undefined }) {
  const year = draft?.year;
  if (!year) return null;
  return (
    <Card title={`Runs in ${year.year}`}>
      <YearGrid year={year.year} days={year.days} bounded={year.bounded} label={`Runs of this draft in ${year.year}`} />
    </Card>
  );
}
