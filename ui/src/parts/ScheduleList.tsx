// A short list of the schedules that match a filter: name, status, source and next run.
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Ask, Schemas } from "../api/client";
import { usePages } from "../api/hooks";
import { Badge } from "../marks/Mark";
import { STATUS_LOOKS } from "../marks/outcomes";
import { LoadMore } from "./LoadMore";
import { FailureNote, Loading } from "./Shown";
import { SourceBadge } from "./SourceBadge";
import { When } from "./When";

interface Props {
  query: Ask<"/api/schedules", "get">["query"];
  /** Shown if no schedule matches. */
  empty: ReactNode;
}

export function ScheduleList({ query, empty }: Props) {
  const pages = usePages("/api/schedules", { query: { ...query, page_size: 50 } });
  const found = pages.data?.pages.flatMap((page) => page.schedules) ?? [];
  return (
    <div className="stack">
      {pages.error ? <FailureNote failure={pages.error} again={() => void pages.refetch()} /> : null}
      {pages.isPending ? <Loading /> : null}
      {pages.data && found.length === 0 && !pages.hasNextPage ? <p className="muted">{empty}</p> : null}
      <ul className="plain stack">
        {found.map((each) => (
          <Line key={each.schedule_id} schedule={each} />
        ))}
      </ul>
      <LoadMore of={pages} />
    </div>
  );
}

function Line({ schedule }: { schedule: Schemas["Schedule"] }) {
  return (
    <li data-row>
      <div className="row">
        <Link to="/schedules/$scheduleId" params={{ scheduleId: schedule.schedule_id }}>
          <bdi>{schedule.name || schedule.schedule_id}</bdi>
        </Link>
        <Badge look={STATUS_LOOKS[schedule.status]} />
        <SourceBadge source={schedule.source} />
      </div>
      <div className="small muted">
        Next run: <When at={schedule.next_run_at} zone={schedule.spec?.timezone} none="Never" />
      </div>
    </li>
  );
}
