// The schedules that obey a calendar.
import { Card } from "../../parts/Page";
import { ScheduleList } from "../../parts/ScheduleList";

export function Obeying({ calendar }: { calendar: string }) {
  return (
    <Card title="Schedules that obey it">
      <ScheduleList
        query={{ calendar }}
        empty={
          <>
            None yet. A schedule obeys it once its definition has <code>{`"calendars": ["${calendar}"]`}</code>.
          </>
        }
      />
    </Card>
  );
}
