// What comes: the next decisions with their reasons, why for any moment, and the year by days.
import { useState, type FormEvent } from "react";
import { useRead } from "../../api/hooks";
import { Button } from "../../parts/Button";
import { TextField } from "../../parts/Field";
import { Card } from "../../parts/Page";
import { Empty, Shown } from "../../parts/Shown";
import { When } from "../../parts/When";
import { serverNow } from "../../time/now";
import { DayDialog } from "./DayDialog";
import { DecisionTable } from "./DecisionTable";
import { foreseen } from "./decisions";
import { momentText } from "./moments";
import type { ViewProps } from "./Schedule";
import { asMoment } from "./search";
import { YearCard } from "./YearCard";

const STEPS = [10, 50, 200] as const;

export function Coming({ schedule, search, change }: ViewProps) {
  if (schedule.status === "deleted") {
    return (
      <Empty title="Nothing comes">
        <p>The schedule was deleted. What it did is in its history, as long as that is kept.</p>
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
    <Card title={search.from === null ? "Next decisions" : "Decisions from a moment on"}>
      <div className="stack">
        <MomentForm
          key={search.from}
          zone={zone}
          from={search.from}
          onFrom={(from) => change({ from })}
          onWhy={(at) => change({ at })}
        />
        <Shown of={found}>
          {({ rows }) =>
            rows.length === 0 ? (
              <Empty title="No decision within 31 days">
                <p>Nothing is due that soon. The year below shows on which days there is something.</p>
              </Empty>
            ) : (
              <>
                <DecisionTable
                  scheduleId={schedule.schedule_id}
                  zone={zone}
                  rows={rows.map(foreseen)}
                  rotation={schedule.inputs_rotation.length}
                  label="Coming decisions"
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

interface MomentProps {
  zone: string;
  from: string | null;
  onFrom: (from: string | null) => void;
  onWhy: (at: string) => void;
}

/** A time with its offset, so that nobody has to guess whose clock is meant. */
function MomentForm({ zone, from, onFrom, onWhy }: MomentProps) {
  const [text, setText] = useState(() => from ?? momentText(serverNow(), zone));
  const [tried, setTried] = useState(false);
  const at = asMoment(text);
  const listed = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (at !== null) onFrom(at);
  };
  return (
    <form className="row moment-form" onSubmit={listed}>
      <div className="moment-field">
        <TextField
          label="Any moment"
          value={text}
          onChange={(event) => setText(event.target.value)}
          spellCheck={false}
          autoComplete="off"
          className="mono"
          wrong={tried && at === null ? ["must be a time with its offset, such as 2026-11-16T09:00:00+01:00"] : null}
          hint={at === null ? "with its offset, as 2026-11-16T09:00:00+01:00" : <When at={at} zone={zone} />}
        />
      </div>
      <div className="row tight moment-buttons">
        <Button type="submit">List from there</Button>
        <Button
          onClick={() => {
            setTried(true);
            if (at !== null) onWhy(at);
          }}
        >
          Why then?
        </Button>
        {from === null ? null : (
          <Button kind="quiet" onClick={() => onFrom(null)}>
            Back to now
          </Button>
        )}
      </div>
    </form>
  );
}
