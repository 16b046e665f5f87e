// The schedules that obey a calendar.
import { usePages } from "../../api/hooks";
import { LoadMore } from "../../parts/LoadMore";
import { Card } from "../../parts/Page";
import { ScheduleLines } from "../../parts/ScheduleLines";
import { FailureNote, Loading } from "../../parts/Shown";

export function Obeying({ calendar }: { calendar: string }) {
  const pages = usePages("/api/schedules", { query: { calendar, page_size: 50 } });
  const found = pages.data?.pages.flatMap((page) => page.schedules) ?? [];
  return (
    <Card title="Schedules that obey it">
      <div className="stack">
        {pages.error ? <FailureNote failure={pages.error} again={() => void pages.refetch()} /> : null}
        {pages.isPending ? <Loading /> : null}
        {pages.data && found.length === 0 && !pages.hasNextPage ? (
          <p className="muted">
            None yet. A schedule obeys it once its definition has <code>{`"calendars": ["${calendar}"]`}</code>.
          </p>
        ) : null}
        <ScheduleLines schedules={found} />
        <LoadMore of={pages} />
      </div>
    </Card>
  );
}
