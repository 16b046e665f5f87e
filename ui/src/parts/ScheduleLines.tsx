// Schedules in a few lines: the name, how it is, and when it comes next.
import { Link } from "@tanstack/react-router";
import type { Schemas } from "../api/client";
import { Badge } from "../marks/Mark";
import { STATUS_LOOKS } from "../marks/outcomes";
import { When } from "./When";

export function ScheduleLines({ schedules }: { schedules: readonly Schemas["Schedule"][] }) {
  return (
    <ul className="plain stack">
      {schedules.map((each) => (
        <li key={each.schedule_id} data-row>
          <div className="row">
            <Link to="/schedules/$scheduleId" params={{ scheduleId: each.schedule_id }}>
              <bdi>{each.name || each.schedule_id}</bdi>
            </Link>
            <Badge look={STATUS_LOOKS[each.status]} />
          </div>
          <div className="small muted">
            next <When at={each.next_run_at} zone={each.spec?.timezone} none="never" />
          </div>
        </li>
      ))}
    </ul>
  );
}
