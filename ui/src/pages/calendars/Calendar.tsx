// One calendar: its dates by year, its coverage, its schedules, and the draft of a change.
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useMemo, useState, type ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { useRead, useTagged, useWrite } from "../../api/hooks";
import { useMay } from "../../api/session";
import { Button } from "../../parts/Button";
import { DeleteDialog } from "../../parts/DeleteDialog";
import { Dialog } from "../../parts/Dialog";
import { TextArea, TextField } from "../../parts/Field";
import { Card, Facts, Page } from "../../parts/Page";
import { FailureNote, Shown } from "../../parts/Shown";
import { useSay } from "../../parts/Toasts";
import { When } from "../../parts/When";
import { LISTED_TEXTS } from "../../parts/year";
import { YearGrid } from "../../parts/YearGrid";
import { useNow } from "../../time/now";
import { isoDay, useViewerZone } from "../../time/zones";
import { counted, saved } from "../../words";
import { Obeying } from "./Obeying";
import { coverageOf, isOfRule, listedDays, meaningOf, readDates, toggled } from "./words";
import "./calendars.css";

type Asking = "clone" | "delete" | "paste" | null;

export default function Calendar() {
  const { name }: { name: string } = useParams({ strict: false });
  const found = useTagged("/api/calendars/{name}", { path: { name } });
  const around = (note: ReactNode) => (
    <Page title={name} above={<Link to="/calendars">← Calendars</Link>}>
      {note}
    </Page>
  );
  return (
    <Shown of={found} around={around}>
      {({ answer, etag }) => <Loaded key={answer.name} calendar={answer} etag={etag} />}
    </Shown>
  );
}

/** `etag` is that of the calendar when the draft began, so that saving does not overwrite a concurrent change. */
interface Draft {
  dates: readonly string[];
  before: readonly string[];
  etag: string | null;
}

function Loaded({ calendar, etag }: { calendar: Schemas["Calendar"]; etag: string | null }) {
  const writes = useMay("write");
  const changeable = writes && !calendar.read_only;
  const [asking, setAsking] = useState<Asking>(null);
  const [draft, setDraft] = useState<Draft | null>(null);
  const dates = draft?.dates ?? calendar.dates;
  const change = (changed: readonly string[]) =>
    setDraft((now) => ({
      before: now?.before ?? calendar.dates,
      etag: now === null ? etag : now.etag,
      dates: changed,
    }));
  return (
    <Page
      title={calendar.name}
      above={<Link to="/calendars">← Calendars</Link>}
      about={`${meaningOf({ ...calendar, dates: [...dates] })}. Coverage: ${coverageOf(calendar)}.`}
      actions={
        writes ? (
          <>
            <Button onClick={() => setAsking("clone")}>Clone</Button>
            {changeable ? <Button onClick={() => setAsking("paste")}>Import dates</Button> : null}
            {changeable ? (
              <Button kind="danger" onClick={() => setAsking("delete")}>
                Delete
              </Button>
            ) : null}
          </>
        ) : null
      }
    >
      {calendar.warning ? <div className="note tone-warn">{calendar.warning}</div> : null}
      {draft ? <Unsaved name={calendar.name} draft={draft} onDone={() => setDraft(null)} /> : null}
      <YearCard calendar={calendar} dates={dates} onDates={changeable ? change : undefined} />
      <div className="columns">
        <Obeying calendar={calendar.name} />
        <Card title="Details">
          <Facts
            of={[
              ["Time zone", calendar.timezone ?? "Schedule time zone"],
              ["Rule", calendar.rule ?? "None"],
              ["Owner", <bdi key="owner">{calendar.owner ?? "—"}</bdi>],
              ["Bundle", calendar.bundle ?? "—"],
              ["Updated", <When key="updated" at={calendar.updated_at} />],
            ]}
          />
        </Card>
      </div>
      {asking === "clone" ? <Clone name={calendar.name} onClose={() => setAsking(null)} /> : null}
      {asking === "delete" ? <Delete name={calendar.name} onClose={() => setAsking(null)} /> : null}
      {asking === "paste" ? <Paste dates={dates} onClose={() => setAsking(null)} onDates={change} /> : null}
    </Page>
  );
}

interface YearProps {
  calendar: Schemas["Calendar"];
  dates: readonly string[];
  /** Without it the dates are read-only. */
  onDates?: (dates: readonly string[]) => void;
}

function YearCard({ calendar, dates, onDates }: YearProps) {
  const navigate = useNavigate();
  const say = useSay();
  const zone = useViewerZone();
  const today = isoDay(useNow(), zone);
  const { year: asked }: { year?: unknown } = useSearch({ strict: false });
  const year =
    Number.isInteger(asked) && Number(asked) >= 1 && Number(asked) <= 9999 ? Number(asked) : Number(today.slice(0, 4));
  const found = useRead("/api/calendars/{name}", { path: { name: calendar.name }, query: { year } }, { keep: true });
  const known = useMemo(() => ({ dates: calendar.dates, days: found.data?.days }), [calendar.dates, found.data]);
  const marked = useMemo(() => listedDays(known, dates, year), [known, dates, year]);
  const listed = calendar.kind === "only_dates" ? "open" : "closed";
  const go = (next: number) =>
    void navigate({
      to: "/calendars/$name",
      params: { name: calendar.name },
      search: { year: next } as never,
      replace: true,
    });
  const toggle = (date: string) => {
    if (isOfRule(known, date)) say(`${date} is set by the rule ${calendar.rule ?? ""} and cannot be changed`, "info");
    else onDates?.(toggled(dates, date));
  };
  return (
    <Card
      title={`${LISTED_TEXTS[listed]} dates ${year}`}
      actions={
        <>
          <Button small onClick={() => go(year - 1)} disabled={year <= 1}>
            ← {year - 1}
          </Button>
          <Button small onClick={() => go(year + 1)} disabled={year >= 9999}>
            {year + 1} →
          </Button>
        </>
      }
    >
      {found.error ? <FailureNote failure={found.error} again={() => void found.refetch()} /> : null}
      <YearGrid
        year={year}
        days={[]}
        closed={marked}
        listed={listed}
        today={today}
        label={`Dates of ${calendar.name} in ${year}`}
        onDay={onDates && toggle}
      />
      {onDates ? <p className="small muted">Click a day to add or remove it, then save.</p> : null}
    </Card>
  );
}

function Unsaved({ name, draft, onDone }: { name: string; draft: Draft; onDone: () => void }) {
  const save = useWrite("put", "/api/calendars/{name}");
  const say = useSay();
  const added = draft.dates.filter((date) => !draft.before.includes(date)).length;
  const removed = draft.before.filter((date) => !draft.dates.includes(date)).length;
  const run = () =>
    save.mutate(
      { path: { name }, body: { dates: [...draft.dates] }, extra: { ifMatch: draft.etag ?? undefined } },
      {
        onSuccess: () => {
          say(saved(name));
          onDone();
        },
      },
    );
  return (
    <div className="stack unsaved">
      <div className="note tone-info row far">
        <span role="status">
          Unsaved changes: {added} added, {removed} removed
        </span>
        <span className="row">
          <Button small onClick={onDone}>
            Discard
          </Button>
          <Button small kind="primary" busy={save.isPending} onClick={run}>
            Save
          </Button>
        </span>
      </div>
      {save.error ? <FailureNote failure={save.error} /> : null}
    </div>
  );
}

function Clone({ name, onClose }: { name: string; onClose: () => void }) {
  const clone = useWrite("post", "/api/calendars/{name}/clone");
  const navigate = useNavigate();
  const [copy, setCopy] = useState("");
  const run = () =>
    clone.mutate(
      { path: { name }, body: { name: copy } },
      { onSuccess: () => void navigate({ to: "/calendars/$name", params: { name: copy } }) },
    );
  return (
    <Dialog
      title={`Clone ${name}`}
      onClose={onClose}
      failure={clone.error}
      action={{ text: "Clone", run, busy: clone.isPending, disabled: copy === "" }}
    >
      <TextField label="New name" value={copy} onChange={(event) => setCopy(event.target.value)} required />
    </Dialog>
  );
}

function Delete({ name, onClose }: { name: string; onClose: () => void }) {
  const remove = useWrite("delete", "/api/calendars/{name}");
  const navigate = useNavigate();
  return (
    <DeleteDialog
      name={name}
      remove={remove}
      given={{ path: { name } }}
      onGone={() => void navigate({ to: "/calendars" })}
      onClose={onClose}
    >
      <p>A calendar that a schedule uses cannot be deleted.</p>
    </DeleteDialog>
  );
}

function Paste({
  dates: before,
  onClose,
  onDates,
}: {
  dates: readonly string[];
  onClose: () => void;
  onDates: (dates: string[]) => void;
}) {
  const [text, setText] = useState(before.join("\n"));
  const { dates, wrong } = readDates(text);
  const run = () => {
    onDates(dates);
    onClose();
  };
  return (
    <Dialog title="Import dates" onClose={onClose} action={{ text: "Import", run, disabled: wrong.length > 0 }}>
      <TextArea
        label="Dates, one per line"
        className="mono"
        rows={14}
        value={text}
        onChange={(event) => setText(event.target.value)}
        hint={counted(dates.length, "date")}
        wrong={wrong.length > 0 ? [`Invalid dates: ${wrong.slice(0, 5).join(", ")}`] : null}
      />
    </Dialog>
  );
}
