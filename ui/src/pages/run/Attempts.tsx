// The attempts of a run and their outcomes.
import type { Schemas } from "../../api/client";
import { usePages } from "../../api/hooks";
import { Badge } from "../../marks/Mark";
import { RUN_LOOKS } from "../../marks/outcomes";
import { LoadMore } from "../../parts/LoadMore";
import { FailureNote, Loading } from "../../parts/Shown";
import { Table } from "../../parts/Table";
import { When } from "../../parts/When";
import { attemptsOf } from "./attemptList";
import { useChanged } from "./Events";

export function Attempts({ run }: { run: Schemas["Run"] }) {
  const pages = usePages("/api/runs/{run_id}/events", {
    path: { run_id: run.run_id },
    query: { limit: 500, own: true },
  });
  useChanged(run, pages.refetch);
  if (pages.error) return <FailureNote failure={pages.error} again={() => void pages.refetch()} />;
  if (pages.data === undefined) return <Loading />;
  const attempts = attemptsOf(
    run,
    pages.data.pages.flatMap((page) => page.events),
  );
  if (attempts.length === 0) return <p className="muted">No attempts yet</p>;
  return (
    <>
      <Table
        frame={{ className: "table-frame bare" }}
        heads={[{ text: "Attempt", number: true }, "Outcome", "Started", "Ended", "Error"]}
      >
        {attempts.map((attempt) => (
          <tr key={attempt.number}>
            <td className="number">{attempt.number}</td>
            <td>
              <Badge look={RUN_LOOKS[attempt.state]} />
            </td>
            <td>
              <When at={attempt.started_at} zone={run.timezone} none="Not recorded" />
            </td>
            <td>
              <When at={attempt.ended_at} zone={run.timezone} none="Not yet" />
            </td>
            <td className="attempt-error">
              {attempt.error_class ? (
                <div className="small muted">{attempt.error_class.replaceAll("_", " ")}</div>
              ) : null}
              {attempt.error ? <pre>{attempt.error}</pre> : attempt.error_class ? null : "—"}
            </td>
          </tr>
        ))}
      </Table>
      <LoadMore of={pages} text="Load later attempts" />
    </>
  );
}
