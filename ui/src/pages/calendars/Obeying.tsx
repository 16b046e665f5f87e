// The schedules that use a calendar.
import { Card } from "../../parts/Page";
import { ScheduleList } from "../../parts/ScheduleList";

export function Obeying({ calendar }: { calendar: string }) {
  return (
    <Card title="Schedules">
      <ScheduleList
        query={{ calendar }}
        empty={
          <>
            No schedules use this calendar. To attach it, add <code>{`"calendars": ["${calendar}"]`}</code> to a
            schedule definition.
          </>
        }
      />
    </Card>
  );
}
