// Upcoming tab: next runs with their reasons, Explain for an instant, and the calendar year.
import { useState } from "react";
import { useRead } from "../../api/hooks";
import { Button } from "../../parts/Button";
import { Card } from "../../parts/Page";
import { Empty, Shown } from "../../parts/Shown";
import { DayDialog } from "./DayDialog";
import { DecisionTable } from "./DecisionTable";
import { foreseen } from "./decisions";
import { useReadMoment } from "./moment";
import { MomentField } from "./MomentField";
import type { ViewProps } from "./Schedule";
import { NO_UPCOMING } from "../../words";
import { YearCard } from "./YearCard";

const STEPS = [10, 50, 200] as const;

export function Coming({ schedule, search, change }: ViewProps) {
  if (schedule.status === "deleted") {
    return (
      <Empty title={NO_UPCOMING}>
        <p>The schedule is deleted. Its history is available until the retention period ends.</p>
      </Empty>
    );
  }
  return (
    <>
      <Next schedule={schedule} search={search} change={change} />
      <YearCard schedule={schedule} search={search} change={change} />
      {search.day === null ? null : (
        <DayDialog schedule={schedule} day={search.day} onClose={() => change({ day: null })} />
      )}
    </>
  );
}

function Next({ schedule, search, change }: ViewProps) {
  const [most, setMost] = useState<number>(STEPS[0]);
  const zone = schedule.spec.timezone;
  const found = useRead(
    "/api/schedules/{schedule_id}/preview",
    { path: { schedule_id: schedule.schedule_id }, query: { n: most, from: search.from ?? undefined } },
    { keep: true },
  );
  const more = STEPS.find((each) => each > most);
  return (
    <Card title={search.from === null ? "Upcoming runs" : "Runs from the selected time"}>
      <div className="stack">
        <MomentForm
          key={search.from}
          scheduleId={schedule.schedule_id}
          zone={zone}
          from={search.from}
          onFrom={(from) => change({ from })}
          onWhy={(at) => change({ at })}
        />
        <Shown of={found}>
          {({ rows }) =>
            rows.length === 0 ? (
              <Nothing schedule={schedule} />
            ) : (
              <>
                <DecisionTable
                  scheduleId={schedule.schedule_id}
                  zone={zone}
                  rows={rows.map(foreseen)}
                  rotation={schedule.inputs_rotation.length}
                  label="Upcoming runs"
                />
                {rows.length >= most && more !== undefined ? (
                  <div className="row">
                    <Button busy={found.isPlaceholderData} onClick={() => setMost(more)}>
                      Show {more}
                    </Button>
                  </div>
                ) : null}
              </>
            )
          }
        </Shown>
      </div>
    </Card>
  );
}

function Nothing({ schedule }: Pick<ViewProps, "schedule">) {
  if (schedule.status === "finished") {
    return (
      <Empty title={NO_UPCOMING}>
        <p>The schedule has no remaining times or runs. Edit the schedule to add more.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No runs within 31 days">
      <p>The year below shows the days with occurrences.</p>
    </Empty>
  );
}

interface MomentProps {
  scheduleId: string;
  zone: string;
  from: string | null;
  onFrom: (from: string | null) => void;
  onWhy: (at: string) => void;
}

/** The server parses the time in the schedule's time zone and returns an instant. */
function MomentForm({ scheduleId, zone, from, onFrom, onWhy }: MomentProps) {
  const [text, setText] = useState(from ?? "");
  const [isMissing, setMissing] = useState(false);
  const read = useReadMoment(scheduleId);
  const go = (to: (at: string) => void) => {
    setMissing(text.trim() === "");
    // The field shows the parse error.
    if (text.trim() !== "") read(text).then(to, () => undefined);
  };
  return (
    <form
      className="row moment-form"
      onSubmit={(event) => {
        event.preventDefault();
        go(onFrom);
      }}
    >
      <div className="moment-field">
        <MomentField
          scheduleId={scheduleId}
          zone={zone}
          label="Date/time"
          value={text}
          onChange={(next) => {
            setText(next);
            setMissing(false);
          }}
          wrong={isMissing ? ["Enter a date or time"] : null}
        />
      </div>
      <div className="row tight moment-buttons">
        <Button type="submit">Show from</Button>
        <Button onClick={() => go(onWhy)}>Explain</Button>
        {from === null ? null : (
          <Button kind="quiet" onClick={() => onFrom(null)}>
            Reset to now
          </Button>
        )}
      </div>
    </form>
  );
}
