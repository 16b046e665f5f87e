// Cells of a row of the list, one component per column.
import { Link, useNavigate } from "@tanstack/react-router";
import { Badge } from "../../marks/Mark";
import { Timed } from "../../parts/Explain";
import { Menu, type MenuItem } from "../../parts/Menu";
import { DurationTrend, Strip } from "../../parts/Strip";
import { Tooltip } from "../../parts/Tooltip";
import { When } from "../../parts/When";
import { useDoings } from "./context";
import { nameOf, originsOf, signsOf, specText, whyNoNext, zoneOf, type Sign } from "./row";
import type { Row } from "./useSchedules";

interface Cell {
  row: Row;
}

/** Shift selects a range. */
export function ChooseCell({ row }: Cell) {
  const { isChosen, choose } = useDoings();
  if (row.status === "deleted") return null;
  return (
    <input
      type="checkbox"
      aria-label={`Select ${nameOf(row)}`}
      checked={isChosen(row.schedule_id)}
      onChange={(event) => choose(row.schedule_id, (event.nativeEvent as MouseEvent).shiftKey)}
    />
  );
}

export function NameCell({ row }: Cell) {
  const { health } = useDoings();
  const signs = signsOf(row, health.get(row.schedule_id));
  const origins = originsOf(row);
  return (
    <>
      <div className="list-name">
        <Link to="/schedules/$scheduleId" params={{ scheduleId: row.schedule_id }} className="cut" title={nameOf(row)}>
          <bdi>{nameOf(row)}</bdi>
        </Link>
      </div>
      <div className="list-id muted small">
        {signs.map((sign) => (
          <SignBadge key={sign.text} sign={sign} />
        ))}
        {row.name ? (
          <span className="mono cut" title={row.schedule_id}>
            <bdi>{row.schedule_id}</bdi>
          </span>
        ) : null}
        {origins.map((each) => (
          <span key={each} className="list-origin cut" title={each}>
            <bdi>{each}</bdi>
          </span>
        ))}
      </div>
    </>
  );
}

function SignBadge({ sign: { look, text, more } }: { sign: Sign }) {
  if (more === null) return <Badge look={look} text={text} />;
  return (
    <Tooltip text={more}>
      <Badge look={look} text={text} />
    </Tooltip>
  );
}

/** Description of the times; the tooltip shows the expressions. */
export function WordsCell({ row }: Cell) {
  const spec = specText(row);
  return (
    <span className={row.words ? "list-words" : "list-words mono"} title={spec}>
      {row.words ? <Timed text={row.words} zone={zoneOf(row)} /> : spec}
    </span>
  );
}

export function NextCell({ row }: Cell) {
  if (row.status === "paused" && row.paused_until) {
    return (
      <>
        <div className="muted small">Paused until</div>
        <When at={row.paused_until} zone={zoneOf(row)} dense absolute />
      </>
    );
  }
  if (row.next_run_at === null) return <span className="muted">{whyNoNext(row)}</span>;
  return <When at={row.next_run_at} zone={zoneOf(row)} dense />;
}

export function RecentCell({ row }: Cell) {
  const { withDurations } = useDoings();
  const recent = row.recent ?? [];
  return (
    <>
      <Strip recent={recent} zone={zoneOf(row)} />
      {withDurations ? <DurationTrend recent={recent} /> : null}
    </>
  );
}

const MOST_LABELS_SHOWN = 3;

export function LabelsCell({ row }: Cell) {
  const { onLabel } = useDoings();
  const labels = Object.entries(row.labels);
  return (
    <div className="list-labels">
      {labels.slice(0, MOST_LABELS_SHOWN).map(([name, value]) => (
        <button
          key={name}
          type="button"
          className="list-label cut"
          title={`Filter by ${name}=${value}`}
          onClick={() => onLabel(`${name}=${value}`)}
        >
          <bdi>
            {name}={value}
          </bdi>
        </button>
      ))}
      {labels.length > MOST_LABELS_SHOWN ? (
        <span className="muted small" title={labels.map(([name, value]) => `${name}=${value}`).join("\n")}>
          and {labels.length - MOST_LABELS_SHOWN} more
        </span>
      ) : null}
    </div>
  );
}

export function OwnerCell({ row }: Cell) {
  return row.owner ? (
    <span className="cut" title={row.owner}>
      <bdi>{row.owner}</bdi>
    </span>
  ) : (
    <span className="muted">—</span>
  );
}

export function MenuCell({ row }: Cell) {
  const navigate = useNavigate();
  const { act, mayOperate, mayWrite } = useDoings();
  const params = { scheduleId: row.schedule_id };
  const isLive = row.status !== "deleted";
  const items: MenuItem[] = [
    { id: "open", text: "Open", run: () => void navigate({ to: "/schedules/$scheduleId", params }) },
  ];
  if (mayWrite && isLive)
    items.push({ id: "edit", text: "Edit", run: () => void navigate({ to: "/schedules/$scheduleId/edit", params }) });
  if (mayOperate && isLive) {
    if (row.status === "paused" || row.status === "broken")
      items.push({ id: "resume", text: "Resume…", run: () => act(row, "resume") });
    if (row.status === "active") items.push({ id: "pause", text: "Pause…", run: () => act(row, "pause") });
    items.push({ id: "trigger", text: "Trigger…", run: () => act(row, "trigger") });
  }
  items.push({ id: "history", text: "History", run: () => act(row, "history") });
  if (mayWrite && isLive) items.push({ id: "delete", text: "Delete…", run: () => act(row, "delete") });
  return <Menu label={`Actions for ${nameOf(row)}`} text="⋯" kind="quiet" items={items} />;
}
