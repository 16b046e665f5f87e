// Table of occurrences with outcome, reason, inputs and run.
import { Link } from "@tanstack/react-router";
import { Badge } from "../../marks/Mark";
import { CERTAINTY_TEXTS } from "../../marks/outcomes";
import { Json } from "../../parts/Json";
import { Timed } from "../../parts/Explain";
import { Table } from "../../parts/Table";
import { When } from "../../parts/When";
import { OCCURRENCE_COLUMNS, VIEW_RUN } from "../../words";
import { hasInputs, type DecisionRow } from "./decisions";

interface Props {
  scheduleId: string;
  zone: string | null;
  rows: readonly DecisionRow[];
  /** Number of rotating inputs; 0 = no rotation. */
  rotation: number;
  label: string;
}

export function DecisionTable({ scheduleId, zone, rows, rotation, label }: Props) {
  const withInputs = rows.some((row) => hasInputs(row) || row.rotationIndex !== null);
  const withRuns = rows.some((row) => row.runId !== null);
  return (
    <Table
      className="table decisions"
      aria-label={label}
      heads={[
        OCCURRENCE_COLUMNS.at,
        OCCURRENCE_COLUMNS.outcome,
        withInputs && OCCURRENCE_COLUMNS.inputs,
        withRuns && OCCURRENCE_COLUMNS.run,
      ]}
    >
      {rows.map((row, index) => (
        <tr key={`${row.at} ${index}`} data-row>
          <td>
            <WhyLink scheduleId={scheduleId} at={row.at}>
              <When at={row.at} zone={zone} />
            </WhyLink>
            {row.due === null ? null : (
              <div className="muted small">
                Due <When at={row.due} zone={zone} absolute />
              </div>
            )}
          </td>
          <td>
            <Outcome row={row} zone={zone} />
          </td>
          {withInputs ? (
            <td>
              <Inputs row={row} rotation={rotation} />
            </td>
          ) : null}
          {withRuns ? (
            <td>
              {row.runId === null ? null : (
                <Link to="/runs/$runId" params={{ runId: row.runId }}>
                  {VIEW_RUN}
                </Link>
              )}
            </td>
          ) : null}
        </tr>
      ))}
    </Table>
  );
}

/** Link that opens the Explain dialog for an instant. */
export function WhyLink({ scheduleId, at, children }: { scheduleId: string; at: string; children: React.ReactNode }) {
  return (
    <Link
      to="/schedules/$scheduleId"
      params={{ scheduleId }}
      search={((before: Record<string, unknown>) => ({ ...before, at })) as never}
      resetScroll={false}
      replace
      className="quiet-link"
      title="Explain"
    >
      {children}
    </Link>
  );
}

function Outcome({ row, zone }: { row: DecisionRow; zone: string | null }) {
  return (
    <div className="outcome">
      <div className="row tight">
        <Badge look={row.look} text={row.count > 1 ? `${row.look.word} × ${row.count}` : undefined} />
        {row.certainty !== null && row.certainty !== "certain" ? (
          <span className={`certainty certainty-${row.certainty}`} title={row.sentence ?? undefined}>
            {CERTAINTY_TEXTS[row.certainty]}
          </span>
        ) : null}
        {row.reason ? <span>{row.reason}</span> : null}
      </div>
      {row.sentence && (row.moved || row.certainty !== "certain") ? (
        <div className="muted small" dir="auto">
          <Timed text={row.sentence} zone={zone} />
        </div>
      ) : null}
      {row.details.map((line, index) => (
        <div key={index} className="muted small" dir="auto">
          <Timed text={line} zone={zone} />
        </div>
      ))}
    </div>
  );
}

function Inputs({ row, rotation }: { row: DecisionRow; rotation: number }) {
  const turn = row.rotationIndex !== null && rotation > 0 ? `${row.rotationIndex + 1} of ${rotation}` : null;
  if (!hasInputs(row)) return turn ? <span className="muted">{turn}</span> : null;
  if (row.inputsOmitted) return <span className="muted">Too large to display</span>;
  return (
    <details className="inputs">
      <summary>
        {turn ? <span className="muted">{turn} · </span> : null}
        <code className="cut" dir="auto">
          {JSON.stringify(row.inputs).slice(0, 60)}
        </code>
      </summary>
      <Json value={row.inputs} label="Inputs" />
    </details>
  );
}
