// The view of all namespaces (`all=true` in the address), for administrators of the installation.
import { useSearch } from "@tanstack/react-router";
import { useSession } from "./session";

/** The value that selects all namespaces in requests. */
export const ALL_NAMESPACES = "*";

/** The pages that support the view. */
export const PAGES_OF_ALL: readonly string[] = ["/", "/runs", "/approvals"];

export function asksForAll(search: Readonly<Record<string, unknown>>): boolean {
  return search["all"] === true || search["all"] === "true";
}

/** Return whether the page shows all namespaces; the service checks the permission. */
export function useOfAll(): boolean {
  const search: Record<string, unknown> = useSearch({ strict: false });
  return useSession().everywhere && asksForAll(search);
}
