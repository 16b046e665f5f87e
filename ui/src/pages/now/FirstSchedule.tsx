// An empty fleet: what would be here, and the shortest ways to a first schedule.
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
        <p>
          Each schedule will have a lane here: what it did in the last hours, what it will do in the next, and, for any
          moment, why.
        </p>
        {writes ? (
          <>
            <Link to="/schedules/new" search={{ template: "http" } as never} className="button primary">
              Make the first one
            </Link>
            <p>It opens with an example that works; or, in a terminal:</p>
            <div className="row copy-line">
              <code>{command}</code>
              <CopyButton small text={command} />
            </div>
          </>
        ) : (
          <p>Your token may look, but not write: somebody with the role of an owner can make the first one.</p>
        )}
      </Empty>
    </div>
  );
}
