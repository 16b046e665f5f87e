// Backfill dialog: select a window, preview the runs, then create them.
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { ask, type Schemas } from "../../api/client";
import { useRead } from "../../api/hooks";
import { useNamespace } from "../../api/session";
import { Badge } from "../../marks/Mark";
import { reasonText } from "../../marks/outcomes";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { CheckField, SelectField, TextField } from "../../parts/Field";
import { evidence } from "../../parts/evidence";
import { Timed } from "../../parts/Explain";
import { Loading } from "../../parts/Shown";
import { Table } from "../../parts/Table";
import { When } from "../../parts/When";
import {
  BACKFILL_OVERLAP_CHOICES,
  counted,
  CREATE,
  OCCURRENCE_COLUMNS,
  OPTIONAL,
  OVERLAP_LABEL,
  PREVIEW,
  VIEW_RUN,
} from "../../words";
import { filledLook, fillingOf, fillingWords, OPEN, progressOf } from "./filling";
import { useReadMoment } from "./moment";
import { MomentField } from "./MomentField";
import type { WholeSchedule } from "./whole";

type Schedule = WholeSchedule;
type Backfilled = Schemas["Backfilled"];

// Offsets from now, parsed by the server.
const SPANS: readonly (readonly [text: string, start: string])[] = [
  ["Last hour", "-1h"],
  ["Last 24 hours", "-24h"],
  ["Last 7 days", "-7d"],
];

interface Wish {
  start: string;
  end: string;
  overlap: string;
  reverse: boolean;
  reason: string;
}

export function BackfillDialog({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const zone = schedule.spec.timezone;
  const [wish, setWish] = useState<Wish>({ start: "-24h", end: "now", overlap: "", reverse: false, reason: "" });
  const { planned, done, busy, failure, send, forget } = useBackfill(schedule, wish);
  const change = (changes: Partial<Wish>) => {
    setWish({ ...wish, ...changes });
    forget();
  };
  const isWhole = wish.start.trim() !== "" && wish.end.trim() !== "";
  if (done !== null) {
    return (
      <Dialog title="Backfill" onClose={onClose} wide closeText="Close">
        <Done answer={done} schedule={schedule} onLeave={onClose} />
      </Dialog>
    );
  }
  const { start, wait } = fillingOf(planned?.answer.results ?? []);
  const action =
    planned === null
      ? { text: PREVIEW, busy, disabled: !isWhole, run: () => void send(true) }
      : {
          text: `${CREATE} ${counted(start + wait, "run")}`,
          busy,
          disabled: start + wait === 0,
          run: () => void send(false),
        };
  return (
    <Dialog title="Backfill" onClose={onClose} wide action={action} failure={failure}>
      <p className="muted">
        Creates runs for past occurrences in this window that have no run. Occurrences with a run are not repeated.
      </p>
      <Window wish={wish} change={change} scheduleId={schedule.schedule_id} zone={zone} />
      {planned === null ? null : <Rows answer={planned.answer} zone={zone} />}
    </Dialog>
  );
}

/** Preview and its window, as parsed by the server. */
interface Planned {
  answer: Backfilled;
  start: string;
  end: string;
}

/** Send a backfill; a dry run does not invalidate queries. */
function useBackfill(schedule: Schedule, wish: Wish) {
  const namespace = useNamespace();
  const queries = useQueryClient();
  const read = useReadMoment(schedule.schedule_id);
  const [planned, setPlanned] = useState<Planned | null>(null);
  const [done, setDone] = useState<Backfilled | null>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Error | null>(null);
  const send = async (isDry: boolean): Promise<void> => {
    setBusy(true);
    setFailure(null);
    const window = planned ?? (await Promise.all([read(wish.start), read(wish.end)]).then(windowOf, () => null));
    if (window === null) return setBusy(false); // The field shows the parse error.
    try {
      const body = {
        start_time: window.start,
        end_time: window.end,
        dry_run: isDry,
        reverse: wish.reverse,
        ...(wish.overlap ? { overlap_policy: wish.overlap as Schemas["OverlapPolicy"] } : {}),
        ...(wish.reason ? { reason: wish.reason } : {}),
      };
      const path = { schedule_id: schedule.schedule_id };
      const { answer } = await ask("post", "/api/schedules/{schedule_id}/backfill", { path, body }, { namespace });
      if (isDry) setPlanned({ answer, start: window.start, end: window.end });
      else {
        setDone(answer);
        void queries.invalidateQueries();
      }
    } catch (wrong) {
      setFailure(wrong as Error);
    } finally {
      setBusy(false);
    }
  };
  const forget = () => {
    setPlanned(null);
    setFailure(null);
  };
  return { planned, done, busy, failure, send, forget };
}

const windowOf = ([start, end]: readonly [string, string]) => ({ start, end });

interface WindowProps {
  scheduleId: string;
  wish: Wish;
  change: (changes: Partial<Wish>) => void;
  zone: string;
}

function Window({ wish, change, scheduleId, zone }: WindowProps) {
  const moment = (name: "start" | "end", label: string) => (
    <MomentField
      scheduleId={scheduleId}
      zone={zone}
      label={label}
      value={wish[name]}
      onChange={(text) => change({ [name]: text })}
    />
  );
  return (
    <>
      <div className="row tight" role="group" aria-label="Window presets">
        {SPANS.map(([text, start]) => (
          <Button key={start} small onClick={() => change({ start, end: "now" })}>
            {text}
          </Button>
        ))}
        <span className="muted small">Time zone: {zone}</span>
      </div>
      <div className="columns">
        {moment("start", "Start")}
        {moment("end", "End (exclusive)")}
        <SelectField
          label={OVERLAP_LABEL}
          value={wish.overlap}
          onChange={(event) => change({ overlap: event.target.value })}
          choices={BACKFILL_OVERLAP_CHOICES}
        />
        <TextField
          label="Reason"
          hint={OPTIONAL}
          value={wish.reason}
          maxLength={500}
          onChange={(event) => change({ reason: event.target.value })}
        />
      </div>
      <CheckField
        label="Run newest first"
        checked={wish.reverse}
        onChange={(event) => change({ reverse: event.target.checked })}
      />
    </>
  );
}

const MOST_ROWS = 100;

function Rows({ answer, zone }: { answer: Backfilled; zone: string }) {
  return (
    <section className="stack" aria-label={answer.dry_run ? PREVIEW : "Result"}>
      <p role="status">
        <strong>{fillingWords(answer)}</strong>{" "}
        {answer.message ? <Timed text={`${answer.message}.`} zone={zone} /> : null}
      </p>
      {answer.results.length === 0 ? null : (
        <Table
          frame={{ className: "table-frame backfill-rows" }}
          heads={[OCCURRENCE_COLUMNS.at, OCCURRENCE_COLUMNS.outcome, !answer.dry_run && OCCURRENCE_COLUMNS.run]}
        >
          {answer.results.slice(0, MOST_ROWS).map((row) => (
            <FilledRow key={row.fire_time} row={row} zone={zone} isDry={answer.dry_run} />
          ))}
        </Table>
      )}
      {answer.results.length > MOST_ROWS ? (
        <p className="muted">
          Shows the first {MOST_ROWS} of {answer.results.length}.
        </p>
      ) : null}
    </section>
  );
}

function FilledRow({ row, zone, isDry }: { row: Schemas["Filled"]; zone: string; isDry: boolean }) {
  return (
    <tr>
      <td>
        <When at={row.fire_time} zone={zone} />
      </td>
      <td>
        <div className="row tight">
          <Badge look={filledLook(row)} />
          {row.reason ? <span>{reasonText(row.reason)}</span> : null}
        </div>
        {evidence(row.reason ?? "", row.detail).map((line, index) => (
          <div key={index} className="muted small" dir="auto">
            {line}
          </div>
        ))}
      </td>
      {isDry ? null : (
        <td>
          {row.run_id ? (
            <Link to="/runs/$runId" params={{ runId: row.run_id }}>
              {VIEW_RUN}
            </Link>
          ) : null}
        </td>
      )}
    </tr>
  );
}

interface DoneProps {
  answer: Backfilled;
  schedule: Schedule;
  onLeave: () => void;
}

function Done({ answer, schedule, onLeave }: DoneProps) {
  const made = answer.results.some((row) => row.run_id !== null);
  return (
    <>
      {made ? <Followed answer={answer} schedule={schedule} onLeave={onLeave} /> : null}
      <Rows answer={answer} zone={schedule.spec.timezone} />
    </>
  );
}

/** Progress of the runs of the backfill. */
function Followed({ answer, schedule, onLeave }: DoneProps) {
  const open = useRead(
    "/api/schedules/{schedule_id}/runs",
    {
      path: { schedule_id: schedule.schedule_id },
      query: { origin: ["backfill"], state: [...OPEN], page_size: 200 },
    },
    { everySeconds: 3 },
  );
  if (open.data === undefined) return <Loading text="Loading runs…" />;
  const { runs, over, isAtMost } = progressOf(answer.results, open.data);
  return (
    <div className="stack">
      <div
        className="progress"
        role="progressbar"
        aria-label="Finished runs"
        aria-valuemin={0}
        aria-valuemax={runs}
        aria-valuenow={over}
      >
        <div style={{ width: `${Math.round((100 * over) / runs)}%` }} />
      </div>
      <p role="status">
        {isAtMost ? "At most " : ""}
        {over} of {runs} finished.{" "}
        <Link
          to="/schedules/$scheduleId"
          params={{ scheduleId: schedule.schedule_id }}
          search={{ tab: "runs", origin: "backfill" } as never}
          onClick={onLeave}
        >
          View backfill runs
        </Link>
      </p>
    </div>
  );
}
