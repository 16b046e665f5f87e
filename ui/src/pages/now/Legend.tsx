// The legend of the timeline.
import { Mark } from "../../marks/Mark";
import { HELD, MISSED, RUN_LOOKS, SKIPPED, WILL_FIRE, WILL_SKIP, type Look } from "../../marks/outcomes";
import { counted, RUN_GROUPS } from "../../words";

const SHOWN: readonly Look[] = [
  RUN_LOOKS.succeeded,
  RUN_LOOKS.running,
  { ...RUN_LOOKS.ready, word: RUN_GROUPS.starting },
  RUN_LOOKS.failed,
  RUN_LOOKS.awaiting_approval,
  HELD,
  MISSED,
  SKIPPED,
  RUN_LOOKS.cancelled,
  WILL_FIRE,
  WILL_SKIP,
];

export function Legend({ many }: { many: number }) {
  return (
    <div className="row far now-legend">
      <ul className="plain row" aria-label="Legend">
        {SHOWN.map((look) => (
          <li key={look.word} className="row tight small">
            <span aria-hidden="true" className="legend-mark">
              <Mark look={look} size={11} />
            </span>
            {look.word}
          </li>
        ))}
      </ul>
      <span className="muted small">
        {counted(many, "schedule")} · Click for details · Numbers group events · Bars show frequent schedules: runs
        above the line, missed and skipped below
      </span>
    </div>
  );
}
