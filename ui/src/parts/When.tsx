// An instant: relative, and absolute in the time zones of the schedule and the viewer.
import { useNow } from "../time/now";
import {
  clockText,
  dateTimeText,
  dayText,
  instant,
  isKnown,
  isoDay,
  offsetText,
  relativeText,
  sameClock,
  useViewerZone,
} from "../time/zones";

interface Props {
  at: string | null | undefined;
  /** The time zone of the schedule; shown with the viewer's if their clocks differ. */
  zone?: string | null;
  /** Relative only; the rest on hover. */
  brief?: boolean;
  /** Absolute only. */
  absolute?: boolean;
  /** For narrow columns: no offset, and no year if it is the current one; both on hover. */
  dense?: boolean;
  none?: string;
}

export function When({ at, zone, brief = false, absolute = false, dense = false, none = "—" }: Props) {
  const now = useNow();
  const viewer = useViewerZone();
  if (!at) return <span className="muted">{none}</span>;
  const relative = relativeText(at, now);
  const full = fullText(at, zone ?? null, viewer);
  if (brief) {
    return (
      <time dateTime={at} title={full} className="nowrap">
        {relative}
      </time>
    );
  }
  if (dense) return <DenseTime {...{ at, zone: zone ?? viewer, viewer, now, title: full, absolute }} />;
  return (
    <time dateTime={at} className="when" title={full}>
      <TimeIn at={at} zone={zone ?? viewer} named={zone != null && !sameClock(at, zone, viewer)} />
      {zone != null && !sameClock(at, zone, viewer) ? <ViewersTime at={at} zone={zone} viewer={viewer} /> : null}
      {absolute ? null : <span className="relative nowrap">{relative}</span>}
    </time>
  );
}

interface DenseProps {
  at: string;
  zone: string;
  viewer: string;
  now: number;
  title: string;
  absolute: boolean;
}

function DenseTime({ at, zone, viewer, now, title, absolute }: DenseProps) {
  const differs = !sameClock(at, zone, viewer);
  const sameDay = isoDay(at, zone) === isoDay(at, viewer);
  return (
    <time dateTime={at} className="when dense" title={title}>
      <span className="nowrap">
        {shortText(at, zone, now)}
        {differs ? <span className="zone"> {placeOf(zone)}</span> : null}
      </span>
      {differs ? (
        <span className="nowrap zone">
          {sameDay ? clockText(at, viewer) : shortText(at, viewer, now)} {placeOf(viewer)}
        </span>
      ) : null}
      {absolute ? null : <span className="relative nowrap">{relativeText(at, now)}</span>}
    </time>
  );
}

/** The date and time, without the current year. */
export function shortText(at: string, zone: string, now: number): string {
  const year = isoDay(now, zone).slice(0, 4);
  const day = dayText(at, zone);
  return `${day.endsWith(` ${year}`) ? day.slice(0, -5) : day}, ${clockText(at, zone)}`;
}

function placeOf(zone: string): string {
  return isKnown(zone) ? zone.split("/").pop()!.replaceAll("_", " ") : zoneLabel(0, zone);
}

function TimeIn({ at, zone, named }: { at: string; zone: string; named: boolean }) {
  return (
    <span className="nowrap">
      {dateTimeText(at, zone)}
      {named ? <span className="zone"> {zoneLabel(at, zone)}</span> : null}
    </span>
  );
}

/** The day is repeated only if it differs. */
function ViewersTime({ at, zone, viewer }: { at: string; zone: string; viewer: string }) {
  const sameDay = isoDay(at, zone) === isoDay(at, viewer);
  return (
    <span className="nowrap zone">
      {sameDay ? clockText(at, viewer) : `${dayText(at, viewer)}, ${clockText(at, viewer)}`} {zoneLabel(at, viewer)}
    </span>
  );
}

/** "Berlin +01:00"; UTC with a note if the browser does not know the zone. */
export function zoneLabel(at: string | number, zone: string): string {
  if (!isKnown(zone)) return `UTC (${zone} is unknown to this browser)`;
  if (zone === "UTC") return "UTC";
  return `${zone.split("/").pop()!.replaceAll("_", " ")} ${offsetText(instant(at), zone)}`;
}

export function fullText(at: string, zone: string | null, viewer: string): string {
  const texts = [zone, viewer, "UTC"].filter(
    (each, index, all): each is string => each !== null && all.indexOf(each) === index,
  );
  return texts
    .map(
      (each) =>
        `${dateTimeText(at, each)} ${isKnown(each) ? `${each} (${offsetText(instant(at), each)})` : zoneLabel(at, each)}`,
    )
    .join("\n");
}
