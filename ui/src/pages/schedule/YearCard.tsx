// Occurrences of a schedule in one year, by day.
import { useRead } from "../../api/hooks";
import { Button } from "../../parts/Button";
import { Card } from "../../parts/Page";
import { Shown } from "../../parts/Shown";
import { When } from "../../parts/When";
import { YearGrid } from "../../parts/YearGrid";
import { useNow } from "../../time/now";
import { isoDay } from "../../time/zones";
import type { ViewProps } from "./Schedule";
import { FIRST_YEAR, LAST_YEAR } from "./search";

export function YearCard({ schedule, search, change }: ViewProps) {
  const zone = schedule.spec.timezone;
  const today = isoDay(useNow(), zone);
  const thisYear = Number(today.slice(0, 4));
  const year = search.year ?? thisYear;
  const found = useRead(
    "/api/schedules/{schedule_id}/year",
    { path: { schedule_id: schedule.schedule_id }, query: { year } },
    { keep: true, staleSeconds: 60 },
  );
  const go = (to: number) => change({ year: to === thisYear ? null : to });
  return (
    <Card
      title={`Year ${year}`}
      actions={
        <>
          <Button small disabled={year <= FIRST_YEAR} onClick={() => go(year - 1)}>
            ← {year - 1}
          </Button>
          {year === thisYear ? null : (
            <Button small onClick={() => go(thisYear)}>
              This year
            </Button>
          )}
          <Button small disabled={year >= LAST_YEAR} onClick={() => go(year + 1)}>
            {year + 1} →
          </Button>
        </>
      }
    >
      <Shown of={found}>
        {(answer) => (
          <div className={answer.year === year ? "stack" : "stack year-stale"} aria-busy={answer.year !== year}>
            <YearGrid
              year={answer.year}
              days={answer.days}
              bounded={answer.bounded}
              today={today}
              chosen={search.day}
              onDay={(day) => change({ day })}
              label={`Occurrences in ${answer.year} by day, in ${zone}`}
            />
            <p className="muted small">
              Recorded and predicted occurrences in {zone} since the schedule was created (
              <When at={schedule.created_at} zone={zone} absolute />
              ). Select a day for details.
            </p>
          </div>
        )}
      </Shown>
    </Card>
  );
}
