// Page of one schedule: summary, upcoming runs, runs, history and definition.
import { Link, useParams } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { useTagged } from "../../api/hooks";
import { ExplainDialog, Timed } from "../../parts/Explain";
import { History } from "../../parts/History";
import { Page } from "../../parts/Page";
import { Shown } from "../../parts/Shown";
import { Tabs } from "../../parts/Tabs";
import { Actions } from "./Actions";
import { Coming } from "./Coming";
import { Definition } from "./Definition";
import { Head } from "./Head";
import { Runs } from "./Runs";
import "./schedule.css";
import type { Search, TabName } from "./search";
import { useScheduleSearch, type Changes } from "./useScheduleSearch";
import { whole, type WholeSchedule } from "./whole";

const TAB_TEXTS: Readonly<Record<TabName, string>> = {
  coming: "Upcoming",
  runs: "Runs",
  history: "History",
  definition: "Definition",
};
const ALL_TABS = Object.entries(TAB_TEXTS).map(([id, text]) => ({ id, text }));

export default function Schedule() {
  const { scheduleId }: { scheduleId: string } = useParams({ strict: false });
  const found = useTagged("/api/schedules/{schedule_id}", {
    path: { schedule_id: scheduleId },
    query: { include_deleted: true },
  });
  const told = found.data?.answer;
  const schedule = useMemo(() => (told === undefined ? undefined : whole(told)), [told]);
  return (
    <Page
      title={schedule?.name || scheduleId}
      above={<Link to="/schedules">← Schedules</Link>}
      about={
        <span className="schedule-id">
          {schedule?.name && schedule.name !== scheduleId ? (
            <>
              <code dir="auto">{scheduleId}</code> ·{" "}
            </>
          ) : null}
          {schedule?.words ? <Timed text={schedule.words} zone={schedule.spec.timezone} /> : null}
        </span>
      }
      actions={schedule ? <Actions schedule={schedule} /> : null}
    >
      <Shown of={found}>
        {() => (schedule === undefined ? null : <Body key={schedule.schedule_id} schedule={schedule} />)}
      </Shown>
    </Page>
  );
}

function Body({ schedule }: { schedule: WholeSchedule }) {
  const [search, change] = useScheduleSearch(schedule.schedule_id);
  const choose = useCallback((id: string) => change({ tab: id as TabName }), [change]);
  return (
    <>
      <Head schedule={schedule} />
      <Tabs label="Schedule views" tabs={ALL_TABS} chosen={search.tab} onChoose={choose}>
        <View schedule={schedule} search={search} change={change} />
      </Tabs>
      {search.at === null ? null : (
        <ExplainDialog
          key={search.at}
          scheduleId={schedule.schedule_id}
          at={search.at}
          zone={schedule.spec.timezone}
          onClose={() => change({ at: null })}
        />
      )}
    </>
  );
}

export interface ViewProps {
  schedule: WholeSchedule;
  search: Search;
  change: (changes: Changes) => void;
}

function View(props: ViewProps) {
  switch (props.search.tab) {
    case "coming":
      return <Coming {...props} />;
    case "runs":
      return <Runs {...props} />;
    case "history":
      return <History scheduleId={props.schedule.schedule_id} zone={props.schedule.spec.timezone} />;
    case "definition":
      return <Definition {...props} />;
  }
}
