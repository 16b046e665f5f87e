// A virtualized table of runs: only visible rows are rendered.
import { Link } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { memo, useLayoutEffect, useRef, useState } from "react";
import { Badge } from "../../marks/Mark";
import { RUN_LOOKS } from "../../marks/outcomes";
import { Table } from "../../parts/Table";
import { When } from "../../parts/When";
import { durationText } from "../../time/zones";
import { causeText } from "../../words";
import { kindText } from "../../words/run";
import { OPEN_STATES, originText } from "./filters";
import {
  assigneeText,
  attemptOf,
  latenessOf,
  secondaryId,
  titleOf,
  usageTexts,
  workflowText,
  type RunRow,
} from "./rows";

interface Props {
  rows: readonly RunRow[];
  /** The selected runs; null = no selection. */
  chosen: ReadonlySet<string> | null;
  onChoose: (id: string, on: boolean) => void;
  /** Rows of all namespaces show and link to their namespace. */
  ofAll: boolean;
}

const ROW_PX = 58;

export function RunTable({ rows, chosen, onChoose, ofAll }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const [from, setFrom] = useState(0);
  useLayoutEffect(() => setFrom(frame.current?.offsetTop ?? 0), []);
  const shown = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => ROW_PX,
    overscan: 12,
    scrollMargin: from,
    getItemKey: (index) => rows[index]!.run_id ?? index,
  });
  const items = shown.getVirtualItems();
  const above = (items[0]?.start ?? from) - from;
  const below = shown.getTotalSize() - ((items[items.length - 1]?.end ?? from) - from);
  const columns = chosen === null ? 8 : 9;
  return (
    <Table
      region="Runs"
      frame={{ ref: frame }}
      className="table runs"
      aria-rowcount={rows.length + 1}
      heads={[
        chosen !== null && { text: "Selected", className: "narrow", hidden: true },
        "State",
        "Schedule",
        "Scheduled for",
        "Started",
        { text: "Delay", number: true },
        { text: "Duration", number: true },
        { text: "Attempt", number: true },
        { text: "Usage", number: true },
      ]}
    >
      <Gap height={above} columns={columns} />
      {items.map(({ index, key }) => {
        const row = rows[index]!;
        return (
          <Row
            key={key}
            index={index}
            row={row}
            measure={shown.measureElement}
            chosen={chosen === null ? null : chosen.has(row.run_id ?? "")}
            onChoose={onChoose}
            ofAll={ofAll}
          />
        );
      })}
      <Gap height={below} columns={columns} />
    </Table>
  );
}

function Gap({ height, columns }: { height: number; columns: number }) {
  if (height <= 0) return null;
  return (
    <tr aria-hidden="true" className="gap">
      <td colSpan={columns} style={{ height }} />
    </tr>
  );
}

interface RowProps {
  row: RunRow;
  index: number;
  measure: (element: HTMLElement | null) => void;
  chosen: boolean | null;
  onChoose: (id: string, on: boolean) => void;
  ofAll: boolean;
}

const Row = memo(function Row({ row, index, measure, chosen, onChoose, ofAll }: RowProps) {
  const id = row.run_id ?? "";
  const late = latenessOf(row);
  const isOpen = OPEN_STATES.includes(row.state);
  return (
    <tr data-row data-index={index} ref={measure} aria-rowindex={index + 2} className={chosen ? "chosen" : undefined}>
      {chosen === null ? null : (
        <td className="narrow">
          {isOpen || chosen ? (
            <input
              type="checkbox"
              className="choose"
              aria-label={`Select run ${id}`}
              checked={chosen}
              onChange={(event) => onChoose(id, event.target.checked)}
            />
          ) : null}
        </td>
      )}
      <td className="state">
        <Badge look={RUN_LOOKS[row.state]} />
        {(row.cause ?? row.error_class) ? (
          <div className="small muted">{causeText(row.cause ?? row.error_class)}</div>
        ) : null}
      </td>
      <td className="what">
        <Link
          to="/runs/$runId"
          params={{ runId: id }}
          search={(ofAll ? { ns: row.namespace } : undefined) as never}
          className="cut"
          title={titleOf(row)}
        >
          <bdi>{titleOf(row)}</bdi>
        </Link>
        <div className="small muted cut">
          {ofAll ? (
            <>
              <bdi>{row.namespace}</bdi> ·{" "}
            </>
          ) : null}
          {secondaryId(row) === null ? null : (
            <>
              <bdi className="mono">{secondaryId(row)}</bdi>
              {" · "}
            </>
          )}
          <bdi>{doing(row)}</bdi>
        </div>
      </td>
      <td>
        <When at={row.nominal} zone={row.timezone} absolute />
      </td>
      <td>
        <When at={row.started_at} brief none="Not yet" />
      </td>
      <td className={`number nowrap${late !== null && late >= LATE_SECONDS ? " tone-warn" : ""}`}>
        {late === null ? "—" : durationText(late)}
      </td>
      <td className="number nowrap">{row.duration_seconds === null ? "—" : durationText(row.duration_seconds)}</td>
      <td className="number">{attemptOf(row)}</td>
      <td className="number nowrap">
        {usageTexts(row.usage).map((text) => (
          <div key={text}>{text}</div>
        ))}
      </td>
    </tr>
  );
});

// Cron expressions have a resolution of one minute.
const LATE_SECONDS = 60;

function doing(row: RunRow): string {
  const what = row.workflow
    ? `Workflow ${workflowText(row.workflow)}`
    : [row.kind && kindText(row.kind), row.workflow_type].filter(Boolean).join(" ");
  const whom = row.assignee ? assigneeText(row.assignee) : "";
  return [originText(row.origin), what, whom, row.task_queue && `queue ${row.task_queue}`].filter(Boolean).join(" · ");
}
