// What waits, by kind and queue: ready to be handed out, queued at the target, held behind others.
import type { Schemas } from "../../api/client";
import { RUN_LOOKS, type Look } from "../../marks/outcomes";
import { Empty } from "../../parts/Shown";

type Depth = Schemas["QueueDepth"];
const PARTS = ["ready", "queued", "held"] as const;
const LOOKS: Record<(typeof PARTS)[number], Look> = {
  ready: RUN_LOOKS.ready,
  queued: RUN_LOOKS.queued,
  held: RUN_LOOKS.held,
};
const TEXTS: Record<(typeof PARTS)[number], string> = {
  ready: "ready",
  queued: "queued at the target",
  held: "held behind others",
};

export function Queues({ of }: { of: readonly Depth[] }) {
  if (of.length === 0) {
    return (
      <Empty title="Nothing waits">
        <p>Runs that wait for a place, for their target or behind others are counted here, by kind and queue.</p>
      </Empty>
    );
  }
  const most = Math.max(1, ...of.map(sumOf));
  return (
    <div className="stack">
      <div className="table-frame cluster-frame" tabIndex={0} role="region" aria-label="Table of queues">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Kind and queue</th>
              {PARTS.map((part) => (
                <th key={part} scope="col" className="number">
                  <span className="row tight queue-head">
                    <span aria-hidden="true" className={`queue-swatch tone-${LOOKS[part].tone} part-${part}`} />
                    {TEXTS[part]}
                  </span>
                </th>
              ))}
              <td className="queue-bars" />
            </tr>
          </thead>
          <tbody>
            {of.map((depth) => (
              <tr key={`${depth.kind} ${depth.queue}`}>
                <th scope="row">
                  {depth.kind} {depth.queue === null ? null : <bdi className="muted">{depth.queue}</bdi>}
                </th>
                {PARTS.map((part) => (
                  <td key={part} className="number">
                    {depth[part].toLocaleString("en")}
                  </td>
                ))}
                <td className="queue-bars">
                  <Bar depth={depth} most={most} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function sumOf(depth: Depth): number {
  return depth.ready + depth.queued + depth.held;
}

/** The numbers stand beside it. */
function Bar({ depth, most }: { depth: Depth; most: number }) {
  return (
    <div className="queue-bar" aria-hidden="true">
      {PARTS.map((part) => (
        <div
          key={part}
          className={`tone-${LOOKS[part].tone} part-${part}`}
          style={{ width: `${(100 * depth[part]) / most}%` }}
        />
      ))}
    </div>
  );
}
