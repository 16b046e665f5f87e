// The calendars: which days each forbids, and how long its dates last.
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { usePages, useWrite } from "../../api/hooks";
import { useMay } from "../../api/session";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { SelectField, TextArea, TextField } from "../../parts/Field";
import { Page } from "../../parts/Page";
import { PagedTable } from "../../parts/PagedTable";
import { Empty } from "../../parts/Shown";
import { useSay } from "../../parts/Toasts";
import { coverageOf, meaningOf, readDates } from "./words";

export default function Calendars() {
  const writes = useMay("write");
  const calendars = usePages("/api/calendars", { query: { page_size: 100 } });
  const [making, setMaking] = useState(false);
  return (
    <Page
      title="Calendars"
      about="On which days schedules may run. A schedule may obey several; all of them must allow the day."
      actions={
        writes ? (
          <Button kind="primary" onClick={() => setMaking(true)}>
            New calendar
          </Button>
        ) : null
      }
    >
      <PagedTable
        of={calendars}
        rowsOf={(pages) => pages.flatMap((page) => page.calendars)}
        heads={["Calendar", "A schedule that obeys it", "Covers", "Days of", "Owner"]}
        empty={
          <Empty title="No calendars yet">
            <p>
              Names such as <code>weekdays</code> and <code>holidays:DE</code> can be attached as they are. Make one for
              days of your own.
            </p>
          </Empty>
        }
      >
        {(calendar) => <Row key={calendar.name} calendar={calendar} />}
      </PagedTable>
      {making ? <NewCalendar onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}

function Row({ calendar }: { calendar: Schemas["Calendar"] }) {
  return (
    <tr data-row>
      <td>
        <Link to="/calendars/$name" params={{ name: calendar.name }}>
          <bdi>{calendar.name}</bdi>
        </Link>{" "}
        {calendar.read_only ? <span className="badge">built in</span> : null}
      </td>
      <td>{meaningOf(calendar)}</td>
      <td>
        {coverageOf(calendar)}
        {calendar.warning ? <div className="small tone-warn">{calendar.warning}</div> : null}
      </td>
      <td>{calendar.timezone ?? "the schedule's zone"}</td>
      <td>
        <bdi>{calendar.owner ?? "—"}</bdi>
      </td>
    </tr>
  );
}

const KINDS = [
  ["skip_dates", "does not run on these days"],
  ["only_dates", "runs only on these days"],
] as const;
type Kind = (typeof KINDS)[number][0];

function NewCalendar({ onClose }: { onClose: () => void }) {
  const create = useWrite("post", "/api/calendars");
  const navigate = useNavigate();
  const say = useSay();
  const [name, setName] = useState("");
  const [kind, setKind] = useState<Kind>("skip_dates");
  const [rule, setRule] = useState("");
  const [zone, setZone] = useState("");
  const [text, setText] = useState("");
  const { dates, wrong } = readDates(text);
  const run = () =>
    create.mutate(
      { body: { name, kind, dates, ...(rule ? { rule } : {}), ...(zone ? { timezone: zone } : {}) } },
      {
        onSuccess: () => {
          say(`${name} is there`);
          void navigate({ to: "/calendars/$name", params: { name } });
        },
      },
    );
  return (
    <Dialog
      title="New calendar"
      onClose={onClose}
      failure={create.error}
      action={{ text: "Make it", run, busy: create.isPending, disabled: name === "" || wrong.length > 0 }}
    >
      <TextField label="Name" value={name} onChange={(event) => setName(event.target.value)} required />
      <SelectField
        label="A schedule that obeys it"
        choices={KINDS}
        value={kind}
        onChange={(event) => setKind(event.target.value as Kind)}
      />
      <TextArea
        label="Dates"
        rows={5}
        value={text}
        onChange={(event) => setText(event.target.value)}
        hint={`such as 2026-12-24, one a line; ${dates.length} read`}
        wrong={wrong.length > 0 ? [`no date: ${wrong.slice(0, 5).join(", ")}`] : null}
      />
      <TextField
        label="Rule"
        value={rule}
        onChange={(event) => setRule(event.target.value)}
        hint="weekends, weekdays, holidays:DE-BY; none = dates alone"
      />
      <TextField
        label="Zone"
        value={zone}
        onChange={(event) => setZone(event.target.value)}
        hint="whose days are meant; none = those of each schedule"
      />
    </Dialog>
  );
}
