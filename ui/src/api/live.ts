// Follow the event stream and refresh live queries on events.
//
// EventSource cannot send a namespace header, so the stream is read with fetch. A lost connection resumes after the
// last received event; a banner is shown meanwhile.
import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { addressOf, headersFor } from "./client";
import { useNamespace } from "./session";
import { refresher } from "./refreshing";
import { NOTHING_READ, readPiece, type StreamEvent, type Unread } from "./stream";

export type Connection = "connecting" | "open" | "lost";

// The service sends data at least every 15 seconds.
const SILENCE_MS = 40_000;
// Not signed in, not permitted, or an unknown namespace.
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 404]);
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

let connection: Connection = "connecting";
const watchers = new Set<() => void>();
const listeners = new Set<(event: StreamEvent) => void>();

function tell(next: Connection): void {
  if (next === connection) return;
  connection = next;
  for (const each of watchers) each();
}

export function useConnection(): Connection {
  return useSyncExternalStore(
    (changed) => {
      watchers.add(changed);
      return () => watchers.delete(changed);
    },
    () => connection,
  );
}

/** Receive events, for pages that show them. */
export function useEvents(heard: (event: StreamEvent) => void): void {
  useEffect(() => {
    listeners.add(heard);
    return () => {
      listeners.delete(heard);
    };
  }, [heard]);
}

/** Used once, in the frame around all pages. */
export function useLive(): void {
  const namespace = useNamespace();
  const queries = useQueryClient();
  useEffect(() => {
    const stop = new AbortController();
    void follow(namespace, queries, stop.signal);
    return () => stop.abort();
  }, [namespace, queries]);
}

async function follow(namespace: string, queries: QueryClient, stop: AbortSignal): Promise<void> {
  let unread: Unread = NOTHING_READ;
  let wait = FIRST_WAIT_MS;
  const refresh = refresher(queries);
  tell("connecting");
  while (!stop.aborted) {
    const began = unread.lastId;
    try {
      unread = await readOnce(
        namespace,
        { text: "", lastId: began },
        stop,
        (event) => {
          for (const each of listeners) each(event);
          refresh();
        },
        () => {
          wait = FIRST_WAIT_MS;
          tell("open");
          refresh(); // changes that were missed while disconnected
        },
      );
      tell("lost");
    } catch (broken) {
      if (stop.aborted) return;
      if (broken instanceof Lost) unread = { text: "", lastId: broken.lastId };
      const status = broken instanceof Lost ? broken.status : null;
      // The session has ended: the session query fails and the sign-in form is shown.
      if (status === 401) void queries.invalidateQueries({ queryKey: ["session"] });
      // A refusal is an answer, not a lost connection: the pages show it.
      tell(status !== null && REFUSALS.has(status) ? "connecting" : "lost");
    }
    if (stop.aborted) return;
    await pause(wait, stop);
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  }
}

class Lost extends Error {
  constructor(
    readonly lastId: string | null,
    readonly status: number | null = null,
  ) {
    super("event stream interrupted");
  }
}

async function readOnce(
  namespace: string,
  from: Unread,
  stop: AbortSignal,
  heard: (event: StreamEvent) => void,
  opened: () => void,
): Promise<Unread> {
  const silent = new AbortController();
  const headers: Record<string, string> = { ...headersFor(namespace), Accept: "text/event-stream" };
  if (from.lastId !== null) headers["Last-Event-ID"] = from.lastId;
  let alarm = setTimeout(() => silent.abort(), SILENCE_MS);
  let unread = from;
  try {
    const response = await fetch(addressOf("/api/events"), {
      headers,
      signal: AbortSignal.any([stop, silent.signal]),
      credentials: "same-origin",
    });
    if (!response.ok || response.body === null)
      throw new Lost(response.status === 422 ? null : from.lastId, response.status);
    opened();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return unread;
      clearTimeout(alarm);
      alarm = setTimeout(() => silent.abort(), SILENCE_MS);
      const read = readPiece(unread, value);
      unread = read.unread;
      read.events.forEach(heard);
    }
  } catch (broken) {
    throw broken instanceof Lost ? broken : new Lost(unread.lastId);
  } finally {
    clearTimeout(alarm);
  }
}

function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    stop.addEventListener("abort", () => {
      clearTimeout(timer);
      done();
    });
  });
}
