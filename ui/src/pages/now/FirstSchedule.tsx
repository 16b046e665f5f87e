// The empty state of the overview, with the shortest ways to create a schedule.
import { Link } from "@tanstack/react-router";
import { useMay, useNamespace, useSession } from "../../api/session";
import { CopyButton } from "../../parts/CopyButton";
import { Empty } from "../../parts/Shown";

const CREATE = "schedule create hello --cron '*/5 * * * *' --url https://example.com/hook";

export function FirstSchedule() {
  const writes = useMay("write");
  const namespace = useNamespace();
  const command = `horarium ${namespace === useSession().namespace ? "" : `--namespace ${namespace} `}${CREATE}`;
  return (
    <div className="card">
      <Empty title={`No schedules in ${namespace} yet`}>
        <p>The timeline shows past and upcoming occurrences of each schedule, and explains each decision.</p>
        {writes ? (
          <>
            <Link to="/schedules/new" search={{ template: "http" } as never} className="button primary">
              Create schedule
            </Link>
            <p>Starts from a working example. In a terminal:</p>
            <div className="row copy-line">
              <code>{command}</code>
              <CopyButton small text={command} />
            </div>
          </>
        ) : (
          <p>Read-only access. Ask an owner of the namespace to create a schedule.</p>
        )}
      </Empty>
    </div>
  );
}
