// The overview: counts, and a timeline of all schedules with past and upcoming occurrences.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useRef, useState } from "react";
import { Refused } from "../../api/client";
import { useOfAll } from "../../api/everywhere";
import { useMay } from "../../api/session";
import { Button } from "../../parts/Button";
import { ExplainDialog } from "../../parts/Explain";
import { Page } from "../../parts/Page";
import { Empty, FailureNote, Loading } from "../../parts/Shown";
import { useNow } from "../../time/now";
import { useViewerZone } from "../../time/zones";
import { panned, type Span } from "../../time/axis";
import { counted } from "../../words";
import { Chart } from "./Chart";
import { Controls } from "./Controls";
import { Counts, useOverview } from "./Counts";
import { FirstSchedule } from "./FirstSchedule";
import { Installation } from "./Installation";
import { arranged, CALM, lanesOf, type Lane } from "./lanes";
import { Legend } from "./Legend";
import "./now.css";
import { DEFAULT_HOURS, DEFAULT_SHARE, searchOf, spanOf, viewFor, viewOf, zoomedTo, type View } from "./span";
import { useAgenda, type Fleet } from "./useAgenda";

export default function Now() {
  const ofAll = useOfAll();
  return ofAll ? (
    <Page title="Overview" about="All namespaces">
      <Installation />
    </Page>
  ) : (
    <OfNamespace />
  );
}

function OfNamespace() {
  const reads = useMay("read");
  const overview = useOverview(reads);
  if (!reads) {
    return (
      <Page title="Overview">
        <Empty title="No permission to read schedules">
          <p>Your token does not include the read permission. Ask an administrator for a token with the viewer role.</p>
        </Empty>
      </Page>
    );
  }
  const isEmpty = overview.data !== undefined && Object.values(overview.data.schedules).every((many) => many === 0);
  return (
    <Page title="Overview">
      {isEmpty ? (
        <FirstSchedule />
      ) : (
        <>
          <Counts overview={overview} />
          <Timeline />
        </>
      )}
    </Page>
  );
}

const HOUR = 3_600_000;

function Timeline() {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const view = useMemo(() => viewOf(search), [search]);
  const zone = useViewerZone();
  const now = useSteppedNow(view.hours);
  const span = useMemo(() => spanOf(view, now), [view, now]);
  const filter = { text: textOf(search["text"]), label: textOf(search["label"]), reason: reasonOf(search["reason"]) };
  const onlyTroubled = search["troubled"] === true || search["troubled"] === "true";
  const change = useChangeSearch();
  const { fleet, failure, again, more } = useAgenda(span, zone, filter);
  const lanes = useLanes(fleet, now, JSON.stringify([filter, view.hours, view.from]));
  const shown = useMemo(
    () => (onlyTroubled ? lanes.filter((lane) => lane.attention !== CALM) : lanes),
    [lanes, onlyTroubled],
  );
  const [asked, setAsked] = useState<{ lane: Lane; at: string } | null>(null);
  const explain = useCallback((lane: Lane, at: string) => setAsked({ lane, at }), []);
  const look = useCallback((next: View) => change(searchOf(next)), [change]);
  const onSpan = useCallback((next: Span) => look(viewFor(next, now)), [look, now]);
  return (
    <section className="stack" aria-label="Timeline">
      <Controls
        view={view}
        filter={filter}
        onlyTroubled={onlyTroubled}
        onFilter={(text, label) => change({ text: text || undefined, label: label || undefined })}
        onAnyReason={() => change({ reason: undefined })}
        onTroubled={(only) => change({ troubled: only || undefined })}
        onHours={(hours) => look(zoomedTo(view, hours, now))}
        onPan={(share) => onSpan(panned(span, share))}
        onNow={() => look({ hours: view.hours, from: null, share: DEFAULT_SHARE })}
      />
      {failure && (fleet === null || failure instanceof Refused) ? (
        <FailureNote failure={failure} again={again} />
      ) : null}
      {fleet === null ? failure ? null : <Loading text="Loading schedules…" /> : null}
      {fleet ? (
        <>
          <Chart fleet={fleet} lanes={shown} span={span} now={now} zone={zone} onSpan={onSpan} onExplain={explain} />
          <NoLanes
            lanes={lanes}
            shown={shown}
            filtered={filter.text + filter.label + filter.reason !== ""}
            onWiden={() =>
              look({ hours: Math.max(24, view.hours * 2, DEFAULT_HOURS), from: null, share: DEFAULT_SHARE })
            }
          />
          {fleet.isCut ? <CutNote fleet={fleet} more={more} /> : null}
          <Legend many={shown.length} />
        </>
      ) : null}
      {asked ? (
        <ExplainDialog
          key={asked.lane.id + asked.at}
          scheduleId={asked.lane.id}
          at={asked.at}
          zone={asked.lane.zone}
          onClose={() => setAsked(null)}
        />
      ) : null}
    </section>
  );
}

function NoLanes({
  lanes,
  shown,
  filtered,
  onWiden,
}: {
  lanes: readonly Lane[];
  shown: readonly Lane[];
  filtered: boolean;
  onWiden: () => void;
}) {
  if (shown.length > 0) return null;
  if (lanes.length > 0) {
    return (
      <Empty title="Nothing needs attention">
        <p>No run failed, was missed or awaits approval in this time range ({counted(lanes.length, "schedule")}).</p>
      </Empty>
    );
  }
  return (
    <Empty title={filtered ? "No matching schedules in this time range" : "No occurrences in this time range"}>
      <p>Only schedules with past or upcoming occurrences in the time range are shown.</p>
      <button type="button" className="button" onClick={onWiden}>
        Widen time range
      </button>
    </Empty>
  );
}

function CutNote({ fleet, more }: { fleet: Fleet; more: (() => void) | null }) {
  if (fleet.lanes === null || more === null) {
    return (
      <p className="note tone-warn" role="status">
        Too many events: only the first 5,000 are shown. Zoom in or filter schedules.
      </p>
    );
  }
  return (
    <p className="note tone-info row" role="status">
      <span className="grow">
        The first {fleet.lanes.length.toLocaleString("en")} schedules are loaded, ordered by ID.
      </span>
      <Button small onClick={more}>
        Load more
      </Button>
    </p>
  );
}

/** The current time in steps of about one pixel, as every step renders all lanes. */
function useSteppedNow(hours: number): number {
  const now = useNow();
  const step = Math.max(1_000, Math.round((hours * HOUR) / 1_000 / 1_000) * 1_000);
  return Math.floor(now / step) * step;
}

/** The lanes in an order that is stable while the view does not change. */
function useLanes(fleet: Fleet | null, now: number, about: string): readonly Lane[] {
  const order = useRef<{ about: string; places: Map<string, number> }>({ about, places: new Map() });
  return useMemo(() => {
    if (order.current.about !== about) order.current = { about, places: new Map() };
    if (fleet === null) return [];
    const lanes = arranged(lanesOf(fleet.rows, fleet.schedules, fleet.lanes, now), order.current.places);
    order.current.places = new Map(lanes.map((lane, index) => [lane.id, index]));
    return lanes;
  }, [fleet, now, about]);
}

function useChangeSearch() {
  const navigate = useNavigate();
  return useCallback(
    (changes: Record<string, unknown>) =>
      void navigate({
        to: "/",
        search: ((before: Record<string, unknown>) => ({ ...before, ...changes })) as never,
        replace: true,
        resetScroll: false,
      }),
    [navigate],
  );
}

/** The reason as the service spells it; other values are ignored. */
function reasonOf(value: unknown): string {
  return typeof value === "string" && /^[a-z_]{1,40}$/.test(value) ? value : "";
}

const MOST_TEXT = 200;

function textOf(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value).slice(0, MOST_TEXT) : "";
}
