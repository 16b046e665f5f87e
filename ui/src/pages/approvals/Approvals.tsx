// Approval requests, pending and decided, and standing approvals.
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import { useOfAll } from "../../api/everywhere";
import { usePages } from "../../api/hooks";
import { useSession, type Session } from "../../api/session";
import { Badge } from "../../marks/Mark";
import { Button } from "../../parts/Button";
import { LoadMore } from "../../parts/LoadMore";
import { Page, SecondaryId } from "../../parts/Page";
import { Empty, FailureNote, Loading } from "../../parts/Shown";
import { Tabs } from "../../parts/Tabs";
import { When } from "../../parts/When";
import { ApprovalFilterBar } from "./ApprovalFilterBar";
import "./approvals.css";
import { BulkDecide } from "./BulkDecide";
import { filtersOf, isFiltered, queryOf, searchOf, type ApprovalFilters } from "./filters";
import { Gates } from "./Question";
import {
  actionText,
  APPROVAL_LOOKS,
  inline,
  mayDecide,
  refusalOf,
  titleOf,
  wantedOf,
  yesText,
  type Approval,
} from "./questions";
import { Standing } from "./Standing";

const PAGE = 50;
const MOST_CHOSEN = 100;
const TABS = [
  { id: "inbox", text: "Requests" },
  { id: "standing", text: "Standing approvals" },
] as const;

export default function Approvals() {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const navigate = useNavigate();
  const chosen = search["tab"] === "standing" ? "standing" : "inbox";
  const filters = { ...filtersOf(search), all: useOfAll() };
  return (
    <Page title="Approvals" about="Runs and steps that require approval before they continue.">
      <Tabs
        label="Approvals"
        tabs={TABS}
        chosen={chosen}
        onChoose={(tab) =>
          void navigate({ to: "/approvals", search: { tab: tab === "inbox" ? undefined : tab } as never })
        }
      >
        {chosen === "inbox" ? <Inbox filters={filters} /> : <Standing />}
      </Tabs>
    </Page>
  );
}

function Inbox({ filters }: { filters: ApprovalFilters }) {
  const navigate = useNavigate();
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [deciding, setDeciding] = useState<"approve" | "reject" | null>(null);
  const pages = usePages("/api/approvals", { query: { ...queryOf(filters), page_size: PAGE } });
  const rows = pages.data?.pages.flatMap((page) => page.approvals) ?? [];
  const change = (next: ApprovalFilters) => {
    setPicked(new Set());
    void navigate({ to: "/approvals", search: searchOf(next) as never });
  };
  const session = useSession();
  const pickable = (row: Approval) => !filters.all && isPickable(session, row);
  const choosable = rows.filter(pickable).map((row) => row.approval_id);
  const pick = useCallback((id: string, on: boolean) => setPicked((now) => toggled(now, id, on)), []);
  // Requests that were decided in the meantime are left out.
  const chosen = rows.filter((row) => picked.has(row.approval_id) && row.status === "pending");
  return (
    <>
      <ApprovalFilterBar key={JSON.stringify(filters)} filters={filters} onChange={change} />
      {pages.error ? <FailureNote failure={pages.error} again={() => void pages.refetch()} /> : null}
      {choosable.length > 1 || chosen.length > 0 ? (
        <Chosen
          many={chosen.length}
          all={Math.min(choosable.length, MOST_CHOSEN)}
          onDecide={setDeciding}
          onAll={() => setPicked(new Set(choosable.slice(0, MOST_CHOSEN)))}
          onClear={() => setPicked(new Set())}
        />
      ) : null}
      {rows.length > 0 ? (
        <ul className="plain approval-rows" aria-label="Approval requests">
          {rows.map((row) => (
            <Row
              key={row.approval_id}
              row={row}
              pickable={pickable(row)}
              ofAll={filters.all}
              picked={picked.has(row.approval_id)}
              onPick={pick}
            />
          ))}
        </ul>
      ) : pages.isPending ? (
        <Loading />
      ) : pages.error ? null : (
        <Nothing filtered={isFiltered(filters)} />
      )}
      <LoadMore of={pages} />
      {deciding ? (
        <BulkDecide
          approvals={chosen}
          decision={deciding}
          onClose={(started) => {
            setDeciding(null);
            if (started) setPicked(new Set());
          }}
        />
      ) : null}
    </>
  );
}

function toggled(now: ReadonlySet<string>, id: string, on: boolean): ReadonlySet<string> {
  const next = new Set(now);
  if (on && next.size < MOST_CHOSEN) next.add(id);
  if (!on) next.delete(id);
  return next;
}

interface ChosenProps {
  many: number;
  /** The number of visible rows that can be selected. */
  all: number;
  onAll: () => void;
  onDecide: (decision: "approve" | "reject") => void;
  onClear: () => void;
}

function Chosen({ many, all, onDecide, onAll, onClear }: ChosenProps) {
  return (
    <div className="row approvals-chosen">
      {many < all ? (
        <Button small onClick={onAll}>
          Select all {all} visible
        </Button>
      ) : null}
      <span role="status">
        {many === 0 ? null : (
          <strong>
            {many} selected{many === MOST_CHOSEN ? " (maximum)" : ""}
          </strong>
        )}
      </span>
      {many === 0 ? null : (
        <>
          <Button small kind="primary" onClick={() => onDecide("approve")}>
            Approve
          </Button>
          <Button small kind="danger" onClick={() => onDecide("reject")}>
            Reject
          </Button>
          <Button small kind="quiet" onClick={onClear}>
            Clear selection
          </Button>
        </>
      )}
    </div>
  );
}

/** A request that needs a reply is answered on its own page. */
function isPickable(session: Session, row: Approval): boolean {
  return row.status === "pending" && wantedOf(row) !== "text" && mayDecide(session, row) && refusalOf(row) === null;
}

interface RowProps {
  row: Approval;
  pickable: boolean;
  /** Shown in the view of all namespaces, with its namespace. */
  ofAll: boolean;
  picked: boolean;
  onPick: (id: string, on: boolean) => void;
}

function Row({ row, pickable, ofAll, picked, onPick }: RowProps) {
  const title = titleOf(row);
  return (
    <li data-row className={picked ? "chosen" : undefined}>
      <span>
        {pickable ? (
          <input
            type="checkbox"
            aria-label={`Select ${title}`}
            checked={picked}
            onChange={(event) => onPick(row.approval_id, event.target.checked)}
          />
        ) : null}
      </span>
      <div className="stack tight">
        <div className="row">
          <Link
            to="/approvals/$approvalId"
            params={{ approvalId: row.approval_id }}
            search={(ofAll ? { ns: row.namespace } : undefined) as never}
          >
            <bdi>{title}</bdi>
          </Link>
          {ofAll ? <bdi className="badge">{row.namespace}</bdi> : null}
          {row.schedule_id ? <SecondaryId name={row.schedule_name} id={row.schedule_id} /> : null}
          <Gates gates={row.gates} />
          {row.status === "pending" ? null : <Badge look={APPROVAL_LOOKS[row.status]} />}
        </div>
        {row.question ? (
          <div className="said" dir="auto">
            {row.question}
          </div>
        ) : (
          <>
            <div dir="auto">{actionText(row.action)}</div>
            <div className="said" dir="auto">
              {inline(row.inputs)}
            </div>
          </>
        )}
      </div>
      <div className="meta">
        <div>
          Requested <When at={row.requested_at} brief />
        </div>
        {row.status === "pending" ? (
          <div>
            Expires: <When at={row.expires_at} brief none="Never" />
            {row.approvals_required > 1 ? ` · ${yesText(row)} approvals` : ""}
          </div>
        ) : (
          <div>{row.decided_by ? <bdi>Decided by {row.decided_by}</bdi> : null}</div>
        )}
      </div>
    </li>
  );
}

function Nothing({ filtered }: { filtered: boolean }) {
  if (filtered) return <Empty title="No matching approval requests" />;
  return (
    <Empty title="No pending approval requests">
      <p>
        A schedule or workflow can require approval before a run, or before a step that publishes, spends, deletes or
        sends. To try it, edit a schedule and set “Require approval”.
      </p>
      <Link to="/schedules" className="button">
        View schedules
      </Link>
    </Empty>
  );
}
