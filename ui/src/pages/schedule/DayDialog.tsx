// Occurrences of a schedule on one day.
import { useRead } from "../../api/hooks";
import { Dialog } from "../../parts/Dialog";
import { Empty, Shown } from "../../parts/Shown";
import { dayAfter, MONTH_NAMES, WEEKDAYS, weekdayOf } from "../../parts/year";
import { useNow } from "../../time/now";
import { isoDay } from "../../time/zones";
import { DecisionTable } from "./DecisionTable";
import { foreseen, ofDay, taken, type DecisionRow } from "./decisions";
import type { WholeSchedule } from "./whole";

interface Props {
  schedule: WholeSchedule;
  day: string;
  onClose: () => void;
}

const MOST_DECIDED = 500;
const MOST_FORESEEN = 200;

export function DayDialog({ schedule, day, onClose }: Props) {
  const zone = schedule.spec.timezone;
  const isToCome = day > isoDay(useNow(), zone);
  const [year, month, number] = day.split("-").map(Number) as [number, number, number];
  const title = `${WEEKDAYS[weekdayOf(day)]!} ${number} ${MONTH_NAMES[month - 1]!} ${year}`;
  const Rows = isToCome ? Foreseen : Decided;
  return (
    <Dialog title={title} onClose={onClose} wide>
      <Rows key={day} schedule={schedule} day={day} />
    </Dialog>
  );
}

interface RowsProps {
  schedule: WholeSchedule;
  day: string;
}

function Foreseen({ schedule, day }: RowsProps) {
  const path = { schedule_id: schedule.schedule_id };
  const found = useRead("/api/schedules/{schedule_id}/preview", { path, query: { n: MOST_FORESEEN, from: day } });
  return (
    <Shown of={found}>
      {({ rows }) => (
        <Found schedule={schedule} day={day} rows={rows.map(foreseen)} isCut={rows.length >= MOST_FORESEEN} />
      )}
    </Shown>
  );
}

function Decided({ schedule, day }: RowsProps) {
  const zone = schedule.spec.timezone;
  const found = useRead("/api/agenda", {
    query: {
      from: day,
      // Includes the next day: a time zone at the date line once skipped a whole day.
      to: dayAfter(dayAfter(day)),
      timezone: zone,
      limit: MOST_DECIDED,
      schedule_id: [schedule.schedule_id],
    },
  });
  return (
    <Shown of={found}>
      {({ rows, truncated }) => <Found schedule={schedule} day={day} rows={rows.map(taken)} isCut={truncated} />}
    </Shown>
  );
}

function Found({
  schedule,
  day,
  rows,
  isCut,
}: {
  schedule: WholeSchedule;
  day: string;
  rows: readonly DecisionRow[];
  isCut: boolean;
}) {
  const zone = schedule.spec.timezone;
  const shown = ofDay(rows, day, zone);
  if (shown.length === 0) {
    return (
      <Empty title="No occurrences on this day">
        <p>No decision is recorded or predicted. Records older than the retention period are deleted.</p>
      </Empty>
    );
  }
  return (
    <>
      <DecisionTable
        scheduleId={schedule.schedule_id}
        zone={zone}
        rows={shown}
        rotation={schedule.inputs_rotation.length}
        label={`Occurrences on ${day}`}
      />
      {isCut && shown.length === rows.length ? (
        <p className="muted">Shows the first {shown.length} occurrences.</p>
      ) : null}
    </>
  );
}
