// Waiting runs by kind and queue: ready, queued at the target, buffered.
import type { Schemas } from "../../api/client";
import { RUN_LOOKS, type Look } from "../../marks/outcomes";
import { Empty } from "../../parts/Shown";
import { Table, type Head } from "../../parts/Table";
import { RUN_STATES } from "../../words";

type Depth = Schemas["QueueDepth"];
const PARTS = ["ready", "queued", "held"] as const;
const LOOKS: Record<(typeof PARTS)[number], Look> = {
  ready: RUN_LOOKS.ready,
  queued: RUN_LOOKS.queued,
  held: RUN_LOOKS.held,
};

const HEADS: readonly Head[] = [
  "Kind and queue",
  ...PARTS.map((part) => ({
    id: part,
    number: true,
    text: (
      <span className="row tight queue-head">
        <span aria-hidden="true" className={`queue-swatch tone-${LOOKS[part].tone} part-${part}`} />
        {RUN_STATES[part]}
      </span>
    ),
  })),
  { text: "", className: "queue-bars" },
];

export function Queues({ of }: { of: readonly Depth[] }) {
  if (of.length === 0) {
    return (
      <Empty title="No waiting runs">
        <p>Runs that are ready, queued at their target or buffered behind an earlier run are counted here.</p>
      </Empty>
    );
  }
  const most = Math.max(1, ...of.map(sumOf));
  return (
    <div className="stack">
      <Table region="Table of queues" frame={{ className: "table-frame cluster-frame" }} heads={HEADS}>
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
      </Table>
    </div>
  );
}

function sumOf(depth: Depth): number {
  return depth.ready + depth.queued + depth.held;
}

/** The numbers are in the other cells of the row. */
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
