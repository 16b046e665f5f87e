// The live rows of the list of runs. They do not move while the reader scrolls.
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { usePages } from "../../api/hooks";
import { OPEN_STATES, queryOf, type RunFilters } from "./filters";
import { mergedRows, seenRows, type RunRow } from "./rows";

const PAGE = 50;
// Each refresh requests all loaded pages, so longer lists do not update.
export const LIVE_PAGES = 4;
// Below this scroll position new rows are held back.
const READING_FROM_PX = 140;

const REFRESH_MS = 5_000;

interface Kept {
  key: string;
  of: unknown;
  rows: readonly RunRow[];
}

const NOTHING: Kept = { key: "", of: null, rows: [] };

export function useRunRows(filters: RunFilters) {
  const key = JSON.stringify(filters);
  const query = useMemo(() => ({ ...queryOf(JSON.parse(key) as RunFilters), page_size: PAGE }), [key]);
  const [many, setMany] = useState(1);
  const pages = usePages("/api/runs", { query }, { live: many <= LIVE_PAGES });
  const [kept, setKept] = useState(NOTHING);
  if (pages.data !== undefined && (kept.of !== pages.data || kept.key !== key)) {
    const asked = pages.data.pages.flatMap((page) => page.runs);
    setKept({ key, of: pages.data, rows: mergedRows(kept.key === key ? kept.rows : [], asked, !pages.hasNextPage) });
  }
  const loaded = pages.data?.pages.length ?? 1;
  useEffect(() => setMany(loaded), [loaded]);
  const rows = kept.key === key ? kept.rows : NOTHING.rows;
  useRefresh(many <= LIVE_PAGES && (filters.all || rows.some((row) => OPEN_STATES.includes(row.state))), pages.refetch);
  const top = useTop(rows, key);
  return { pages, isLive: many <= LIVE_PAGES, ...seenRows(rows, top) };
}

/** Poll for claims and retries, which the stream does not report. */
function useRefresh(wanted: boolean, refetch: () => unknown): void {
  useEffect(() => {
    if (!wanted) return;
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") void refetch();
    }, REFRESH_MS);
    return () => clearInterval(timer);
  }, [wanted, refetch]);
}

/** Return the newest row at the start of scrolling; null at the top of the page. */
function useTop(rows: readonly RunRow[], key: string): string | null {
  const reading = useSyncExternalStore(onScroll, () => window.scrollY > READING_FROM_PX);
  const newest = rows[0]?.run_id ?? null;
  const [held, setHeld] = useState<{ key: string; top: string | null } | null>(null);
  if (!reading && held !== null) setHeld(null);
  if (reading && newest !== null && held?.key !== key) setHeld({ key, top: newest });
  return reading ? (held?.top ?? null) : null;
}

function onScroll(changed: () => void): () => void {
  window.addEventListener("scroll", changed, { passive: true });
  return () => window.removeEventListener("scroll", changed);
}
