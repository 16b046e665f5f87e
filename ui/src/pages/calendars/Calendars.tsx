// The list of calendars with their dates and coverage, and the dialog that creates one.
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
import { counted, created } from "../../words";
import { coverageOf, meaningOf, readDates } from "./words";

export default function Calendars() {
  const writes = useMay("write");
  const calendars = usePages("/api/calendars", { query: { page_size: 100 } });
  const [making, setMaking] = useState(false);
  return (
    <Page
      title="Calendars"
      about="Calendars exclude or include dates. A schedule runs only on dates that all its calendars allow."
      actions={
        writes ? (
          <Button kind="primary" onClick={() => setMaking(true)}>
            Create calendar
          </Button>
        ) : null
      }
    >
      <PagedTable
        of={calendars}
        rowsOf={(pages) => pages.flatMap((page) => page.calendars)}
        heads={["Calendar", "Effect", "Coverage", "Time zone", "Owner"]}
        empty={
          <Empty title="No calendars yet">
            <p>
              Built-in calendars such as <code>weekdays</code> and <code>holidays:DE</code> need no setup. Create a
              calendar for custom dates.
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
        {calendar.read_only ? <span className="badge">Built-in</span> : null}
      </td>
      <td>{meaningOf(calendar)}</td>
      <td>
        {coverageOf(calendar)}
        {calendar.warning ? <div className="small tone-warn">{calendar.warning}</div> : null}
      </td>
      <td>{calendar.timezone ?? "Schedule time zone"}</td>
      <td>
        <bdi>{calendar.owner ?? "—"}</bdi>
      </td>
    </tr>
  );
}

const KINDS = [
  ["skip_dates", "Exclude these dates"],
  ["only_dates", "Include only these dates"],
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
          say(created(name));
          void navigate({ to: "/calendars/$name", params: { name } });
        },
      },
    );
  return (
    <Dialog
      title="Create calendar"
      onClose={onClose}
      failure={create.error}
      action={{ text: "Create", run, busy: create.isPending, disabled: name === "" || wrong.length > 0 }}
    >
      <TextField label="Name" value={name} onChange={(event) => setName(event.target.value)} required />
      <SelectField
        label="Effect"
        choices={KINDS}
        value={kind}
        onChange={(event) => setKind(event.target.value as Kind)}
      />
      <TextArea
        label="Dates"
        rows={5}
        value={text}
        onChange={(event) => setText(event.target.value)}
        hint={`One per line, such as 2026-12-24. ${counted(dates.length, "date")}.`}
        wrong={wrong.length > 0 ? [`Invalid dates: ${wrong.slice(0, 5).join(", ")}`] : null}
      />
      <TextField
        label="Rule"
        value={rule}
        onChange={(event) => setRule(event.target.value)}
        hint="weekends, weekdays or holidays:DE-BY. Optional."
      />
      <TextField
        label="Time zone"
        value={zone}
        onChange={(event) => setZone(event.target.value)}
        hint="Defines when a date begins and ends. Default: the time zone of each schedule."
      />
    </Dialog>
  );
}
