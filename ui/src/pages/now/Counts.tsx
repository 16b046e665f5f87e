// What an operator acts on, in numbers; each leads to the list that it counts.
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

// The stream tells of one namespace alone.
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
    text: "Failing",
    look: HEALTH_LOOKS.failing,
    to: "/schedules",
    search: () => ({ health: "failing" }),
    count: (of) => of.failing,
  },
  {
    name: "schedules.broken",
    text: "Broken",
    look: STATUS_LOOKS.broken,
    to: "/schedules",
    search: () => ({ status: "broken" }),
    count: (of) => of.schedules.broken,
  },
  {
    name: "late",
    text: "Late",
    look: HEALTH_LOOKS.late,
    to: "/schedules",
    search: () => ({ health: "late" }),
    count: (of) => of.late,
  },
  {
    name: "stale",
    text: "Stale",
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
    text: "Awaiting approval",
    look: RUN_LOOKS.awaiting_approval,
    to: "/approvals",
    search: () => ({ status: "pending" }),
    count: (of) => of.waiting_for_approval,
  },
  {
    name: "running",
    text: "Running",
    look: RUN_LOOKS.running,
    to: "/runs",
    search: () => ({ state: "running" }),
    count: (of) => of.running,
  },
  {
    name: "held",
    text: "Buffered",
    look: HELD,
    to: "/runs",
    search: () => ({ state: "held" }),
    count: (of) => of.held,
  },
];

interface Props {
  overview: ReturnType<typeof useOverview>;
  /** Of all namespaces: only some of the lists have such a view. */
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
