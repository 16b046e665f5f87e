// One calendar: a year of it, how long it lasts, who obeys it, and its dates to change.
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
import { YearGrid } from "../../parts/YearGrid";
import { useNow } from "../../time/now";
import { isoDay, useViewerZone } from "../../time/zones";
import { Obeying } from "./Obeying";
import { coverageOf, isOfRule, listedDays, meaningOf, readDates, toggled } from "./words";
import "./calendars.css";

type Asking = "clone" | "delete" | "paste" | null;

export default function Calendar() {
  const { name } = useParams({ strict: false }) as { name: string };
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

/** `etag` is that of the calendar when the draft was begun: what somebody else saves meanwhile is not overwritten. */
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
      about={`A schedule that obeys it ${meaningOf({ ...calendar, dates: [...dates] })}. Covers: ${coverageOf(calendar)}.`}
      actions={
        writes ? (
          <>
            <Button onClick={() => setAsking("clone")}>Clone</Button>
            {changeable ? <Button onClick={() => setAsking("paste")}>Paste dates</Button> : null}
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
        <Card title="About">
          <Facts
            of={[
              ["Days of", calendar.timezone ?? "the zone of each schedule"],
              ["Rule", calendar.rule ?? "none"],
              ["Owner", <bdi key="owner">{calendar.owner ?? "—"}</bdi>],
              ["Bundle", calendar.bundle ?? "—"],
              ["Changed", <When key="changed" at={calendar.updated_at} />],
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
  /** Without it the days are only read. */
  onDates?: (dates: readonly string[]) => void;
}

function YearCard({ calendar, dates, onDates }: YearProps) {
  const navigate = useNavigate();
  const say = useSay();
  const zone = useViewerZone();
  const today = isoDay(useNow(), zone);
  const { year: asked } = useSearch({ strict: false }) as { year?: unknown };
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
    if (isOfRule(known, date)) say(`${date} is one of the days of ${calendar.rule ?? "the rule"}: those stay`, "info");
    else onDates?.(toggled(dates, date));
  };
  return (
    <Card
      title={`${listed === "open" ? "Open" : "Closed"} days of ${year}`}
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
        label={`Days of ${calendar.name} in ${year}`}
        onDay={onDates && toggle}
      />
      {onDates ? (
        <p className="small muted">Choose a day to put it in or take it out; nothing is kept before it is saved.</p>
      ) : null}
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
          say(`${name} is saved`);
          onDone();
        },
      },
    );
  return (
    <div className="stack unsaved">
      <div className="note tone-info row far">
        <span role="status">
          Not saved: {added} added, {removed} taken out.
        </span>
        <span className="row">
          <Button small onClick={onDone}>
            Leave as it was
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
      <TextField label="Name of the copy" value={copy} onChange={(event) => setCopy(event.target.value)} required />
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
      <p>A calendar that a schedule obeys is not deleted.</p>
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
    <Dialog title="Dates" onClose={onClose} action={{ text: "Take these", run, disabled: wrong.length > 0 }}>
      <TextArea
        label="One a line"
        className="mono"
        rows={14}
        value={text}
        onChange={(event) => setText(event.target.value)}
        hint={`${dates.length} dates`}
        wrong={wrong.length > 0 ? [`no date: ${wrong.slice(0, 5).join(", ")}`] : null}
      />
    </Dialog>
  );
}
