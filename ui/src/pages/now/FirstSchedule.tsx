// An empty fleet: what would be here, and the shortest ways to a first schedule.
import { Link } from "@tanstack/react-router";
import { useMay, useNamespace } from "../../api/session";
import { Button } from "../../parts/Button";
import { Empty } from "../../parts/Shown";
import { useSay } from "../../parts/Toasts";

const COMMAND = "horarium schedule create hello --cron '*/5 * * * *' --url https://example.com/hook";

export function FirstSchedule() {
  const writes = useMay("write");
  const namespace = useNamespace();
  const say = useSay();
  const copy = () =>
    void navigator.clipboard.writeText(COMMAND).then(
      () => say("Copied"),
      () => say("The browser does not let us copy; mark the text instead", "warn"),
    );
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
              <code>{COMMAND}</code>
              <Button small onClick={copy}>
                Copy
              </Button>
            </div>
          </>
        ) : (
          <p>Your token may look, but not write: somebody with the role of an operator can make the first one.</p>
        )}
      </Empty>
    </div>
  );
}
