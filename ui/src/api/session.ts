// Who is signed in, what they may do, and in which namespace they look around.
import { queryOptions, useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { createContext, useContext } from "react";
import { addressOf, headersFor, refusalOf, Refused, Unreachable, type Schemas } from "./client";

export type Session = Schemas["Session"];
export type Permission = Session["permissions"][number];

const KEY = ["session"] as const;

/** null = nobody is signed in. */
export const sessionQuery = queryOptions<Session | null, Refused | Unreachable>({
  queryKey: KEY,
  queryFn: async () => {
    try {
      return await exchange("GET");
    } catch (wrong) {
      if (wrong instanceof Refused && wrong.status === 401) return null;
      throw wrong;
    }
  },
  retry: (times, wrong) => wrong instanceof Unreachable && times < 3,
  staleTime: 60_000,
  refetchOnWindowFocus: "always", // another user may have signed in in another tab
});

export function useSessionQuery() {
  return useQuery(sessionQuery);
}

export function useSignIn() {
  const queries = useQueryClient();
  return async (token: string): Promise<void> => {
    const session = await exchange("POST", { token });
    forgetOthers(queries);
    queries.setQueryData(KEY, session);
  };
}

/** Whose token or code this is; no session begins, and a code stays good. */
export function whoseToken(token: string): Promise<Session> {
  return exchange("POST", { token, dry_run: true });
}

/** Fails where the service does not hear of it: the cookie, which no script can take away, is then still good. */
export function useSignOut() {
  const queries = useQueryClient();
  return async (): Promise<void> => {
    await exchange("DELETE");
    forgetOthers(queries);
    queries.setQueryData(KEY, null);
  };
}

/** What another caller was answered is gone; the session itself stays, since the app watches it. */
function forgetOthers(queries: QueryClient): void {
  queries.removeQueries({ predicate: (query) => query.queryKey[0] !== KEY[0] });
}

async function exchange(method: "GET" | "POST" | "DELETE", body?: object): Promise<Session> {
  let response: Response;
  try {
    response = await fetch(addressOf("/api/session"), {
      method,
      headers: { ...headersFor(undefined), ...(body ? { "Content-Type": "application/json" } : {}) },
      body: body && JSON.stringify(body),
      credentials: "same-origin",
    });
  } catch {
    throw new Unreachable("Service unreachable");
  }
  const text = await response.text();
  if (!response.ok) throw refusalOf(response, text);
  return (text ? JSON.parse(text) : null) as Session;
}

export const SessionContext = createContext<Session | null>(null);
export const NamespaceContext = createContext<string | undefined>(undefined);

/** Only below the sign-in page, so there is always one. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("used outside of a session");
  return session;
}

/** The namespace of the address, or that of the token. */
export function useNamespace(): string {
  const chosen = useContext(NamespaceContext);
  const session = useContext(SessionContext);
  return chosen ?? session?.namespace ?? "default";
}

/** Whether write controls are shown at all; the service decides anyway. */
export function useMay(permission: Permission): boolean {
  return useSession().permissions.includes(permission);
}
