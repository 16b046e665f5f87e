// The session: user, permissions and namespace.
import { queryOptions, useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { createContext, useContext } from "react";
import { addressOf, headersFor, refusalOf, Refused, Unreachable, type Schemas } from "./client";

export type Session = Schemas["Session"];
export type Permission = Session["permissions"][number];

const KEY = ["session"] as const;

/** null = not signed in. */
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

/** Return the session that a token or code would start, without starting it; a code stays valid. */
export function whoseToken(token: string): Promise<Session> {
  return exchange("POST", { token, dry_run: true });
}

/** Sign out. Fails if the service is unreachable: scripts cannot delete the cookie, so it stays valid. */
export function useSignOut() {
  const queries = useQueryClient();
  return async (): Promise<void> => {
    await exchange("DELETE");
    forgetOthers(queries);
    queries.setQueryData(KEY, null);
  };
}

/** Remove the cached answers of the previous user; the session query stays, as the app observes it. */
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

/** The session, available on all pages except sign-in. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("used outside of a session");
  return session;
}

/** The namespace of the address or of the token. */
export function useNamespace(): string {
  const chosen = useContext(NamespaceContext);
  const session = useContext(SessionContext);
  return chosen ?? session?.namespace ?? "default";
}

/** Return whether to show controls for a permission; the service checks it again. */
export function useMay(permission: Permission): boolean {
  return useSession().permissions.includes(permission);
}
