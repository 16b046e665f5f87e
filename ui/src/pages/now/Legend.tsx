// What the shapes mean.
import { Mark } from "../../marks/Mark";
import { HELD, MISSED, RUN_LOOKS, SKIPPED, WILL_FIRE, WILL_SKIP, type Look } from "../../marks/outcomes";

const SHOWN: readonly (readonly [Look, string])[] = [
  [RUN_LOOKS.succeeded, "succeeded"],
  [RUN_LOOKS.running, "running"],
  [RUN_LOOKS.ready, "starting"],
  [RUN_LOOKS.failed, "failed"],
  [RUN_LOOKS.awaiting_approval, "awaiting approval"],
  [HELD, "buffered"],
  [MISSED, "missed"],
  [SKIPPED, "skipped"],
  [RUN_LOOKS.cancelled, "cancelled"],
  [WILL_FIRE, "scheduled"],
  [WILL_SKIP, "will skip"],
];

export function Legend({ many }: { many: number }) {
  return (
    <div className="row far now-legend">
      <ul className="plain row" aria-label="What the shapes mean">
        {SHOWN.map(([look, word]) => (
          <li key={word} className="row tight small">
            <span aria-hidden="true" className="legend-mark">
              <Mark look={look} size={11} />
            </span>
            {word}
          </li>
        ))}
      </ul>
      <span className="muted small">
        {many === 1 ? "1 schedule" : `${many} schedules`} · Click for details · Numbers group events · Bars count dense
        schedules: above the line what ran, below it what was missed or skipped
      </span>
    </div>
  );
}
