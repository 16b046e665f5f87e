// The overview of all namespaces: the counts, and the schedules that need attention.
import { Link } from "@tanstack/react-router";
import { ALL_NAMESPACES } from "../../api/everywhere";
import { useRead } from "../../api/hooks";
import { Badge } from "../../marks/Mark";
import { HEALTH_LOOKS } from "../../marks/outcomes";
import { Empty, Shown } from "../../parts/Shown";
import { Table } from "../../parts/Table";
import { Counts, useOverview } from "./Counts";

const EVERY_SECONDS = 15;

export function Installation() {
  const overview = useOverview(true, true);
  const unwell = useRead(
    "/api/health/schedules",
    { query: { unwell: true, namespace: ALL_NAMESPACES } },
    { everySeconds: EVERY_SECONDS },
  );
  return (
    <>
      <Counts overview={overview} ofAll />
      <section className="stack" aria-label="Needs attention">
        <h2>Needs attention</h2>
        <Shown of={unwell}>
          {({ schedules }) =>
            schedules.length === 0 ? (
              <Empty title="All schedules are healthy" />
            ) : (
              <Table region="Schedules that need attention" heads={["Namespace", "Schedule", "Health", "Reason"]}>
                {schedules.map((each) => (
                  <tr key={`${each.namespace}/${each.schedule_id}`} data-row>
                    <td>
                      <bdi>{each.namespace}</bdi>
                    </td>
                    <td>
                      <Link
                        to="/schedules/$scheduleId"
                        params={{ scheduleId: each.schedule_id }}
                        search={{ ns: each.namespace } as never}
                      >
                        <bdi>{each.schedule_name}</bdi>
                      </Link>
                    </td>
                    <td>
                      <Badge look={HEALTH_LOOKS[each.status]} />
                    </td>
                    <td>{each.sentence}</td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Shown>
      </section>
    </>
  );
}
