// What the shapes mean.
import { Mark } from "../../marks/Mark";
import { HELD, MISSED, RUN_LOOKS, SKIPPED, WILL_FIRE, WILL_SKIP, type Look } from "../../marks/outcomes";

const SHOWN: readonly (readonly [Look, string])[] = [
  [RUN_LOOKS.succeeded, "succeeded"],
  [RUN_LOOKS.running, "running"],
  [RUN_LOOKS.ready, "on its way"],
  [RUN_LOOKS.failed, "went wrong"],
  [RUN_LOOKS.awaiting_approval, "waits for a yes"],
  [HELD, "held"],
  [MISSED, "missed"],
  [SKIPPED, "skipped"],
  [RUN_LOOKS.cancelled, "stopped"],
  [WILL_FIRE, "will fire"],
  [WILL_SKIP, "will be skipped"],
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
        {many === 1 ? "1 lane" : `${many} lanes`} · click any moment to ask why · a number stands for marks that fall
        together, and shows the worst
      </span>
    </div>
  );
}
