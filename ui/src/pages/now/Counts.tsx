// Counts of schedules and runs that need attention; each links to its list.
import { Link, type LinkProps } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { ALL_NAMESPACES, PAGES_OF_ALL } from "../../api/everywhere";
import { useRead } from "../../api/hooks";
import { Mark } from "../../marks/Mark";
import { HEALTH_LOOKS, HELD, MISSED, RUN_LOOKS, STATUS_LOOKS, type Look } from "../../marks/outcomes";
import { FailureNote } from "../../parts/Shown";

type Overview = Schemas["Overview"];

export function useOverview(enabled: boolean, ofAll = false) {
  const query = ofAll ? { namespace: ALL_NAMESPACES } : undefined;
  return useRead("/api/overview", query ? { query } : {}, { enabled, everySeconds: ofAll ? EVERY_SECONDS : undefined });
}

// The event stream covers one namespace only.
const EVERY_SECONDS = 15;

interface Tile {
  name: string;
  text: string;
  look: Look;
  to: LinkProps["to"];
  search: (overview: Overview | undefined) => Record<string, unknown>;
  count: (overview: Overview) => number;
}

const TILES: readonly Tile[] = [
  {
    name: "failing",
    text: HEALTH_LOOKS.failing.word,
    look: HEALTH_LOOKS.failing,
    to: "/schedules",
    search: () => ({ health: "failing" }),
    count: (of) => of.failing,
  },
  {
    name: "schedules.broken",
    text: STATUS_LOOKS.broken.word,
    look: STATUS_LOOKS.broken,
    to: "/schedules",
    search: () => ({ status: "broken" }),
    count: (of) => of.schedules.broken,
  },
  {
    name: "late",
    text: HEALTH_LOOKS.late.word,
    look: HEALTH_LOOKS.late,
    to: "/schedules",
    search: () => ({ health: "late" }),
    count: (of) => of.late,
  },
  {
    name: "stale",
    text: HEALTH_LOOKS.stale.word,
    look: HEALTH_LOOKS.stale,
    to: "/schedules",
    search: () => ({ health: "stale" }),
    count: (of) => of.stale,
  },
  {
    name: "missed_lately",
    text: "Missed (24 h)",
    look: MISSED,
    to: "/",
    search: (of) => ({ reason: "missed", hours: 24, from: of?.since }),
    count: (of) => of.missed_lately,
  },
  {
    name: "failed_24h",
    text: "Failed (24 h)",
    look: RUN_LOOKS.failed,
    to: "/runs",
    search: (of) => ({ state: "unsuccessful", since: of?.since }),
    count: (of) => of.failed_24h,
  },
  {
    name: "waiting_for_approval",
    text: RUN_LOOKS.awaiting_approval.word,
    look: RUN_LOOKS.awaiting_approval,
    to: "/approvals",
    search: () => ({ status: "pending" }),
    count: (of) => of.waiting_for_approval,
  },
  {
    name: "running",
    text: RUN_LOOKS.running.word,
    look: RUN_LOOKS.running,
    to: "/runs",
    search: () => ({ state: "running" }),
    count: (of) => of.running,
  },
  {
    name: "held",
    text: HELD.word,
    look: HELD,
    to: "/runs",
    search: () => ({ state: "held" }),
    count: (of) => of.held,
  },
];

interface Props {
  overview: ReturnType<typeof useOverview>;
  /** All namespaces: only some lists support this view. */
  ofAll?: boolean;
}

export function Counts({ overview, ofAll = false }: Props) {
  if (overview.error && overview.data === undefined)
    return <FailureNote failure={overview.error} again={() => void overview.refetch()} />;
  return (
    <ul className="plain counts" aria-label="Overview" aria-busy={overview.isPending}>
      {TILES.map((tile) => (
        <li key={tile.name}>
          <Count tile={tile} overview={overview.data} ofAll={ofAll} />
        </li>
      ))}
    </ul>
  );
}

function Count({ tile, overview, ofAll }: { tile: Tile; overview: Overview | undefined; ofAll: boolean }) {
  const many = overview === undefined ? null : tile.count(overview);
  const isMore = overview?.bounded.includes(tile.name) ?? false;
  const className = many ? `count tone-${tile.look.tone}` : "count none";
  const content = (
    <>
      <span className="count-number">{many === null ? "·" : countOf(many, isMore)}</span>
      <span className="row tight small">
        <span aria-hidden="true" className="legend-mark">
          <Mark look={tile.look} size={10} />
        </span>
        {tile.text}
      </span>
    </>
  );
  if (ofAll && (tile.to === "/" || !PAGES_OF_ALL.includes(String(tile.to))))
    return <div className={className}>{content}</div>;
  const search = { ...tile.search(overview), all: ofAll || undefined };
  return (
    <Link to={tile.to} search={search as never} className={className}>
      {content}
    </Link>
  );
}

/** A count that stopped at its bound before it found one is unknown. */
export function countOf(many: number, isMore: boolean): string {
  return isMore && many === 0 ? "?" : `${many.toLocaleString("en")}${isMore ? "+" : ""}`;
}
