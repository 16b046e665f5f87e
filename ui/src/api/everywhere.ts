// The view of all namespaces, which the address asks for with `all=true`: for an admin of the installation.
import { useSearch } from "@tanstack/react-router";
import { useSession } from "./session";

/** What the service takes for all namespaces. */
export const ALL_NAMESPACES = "*";

/** The pages that have such a view. */
export const PAGES_OF_ALL: readonly string[] = ["/", "/runs", "/approvals"];

export function asksForAll(search: Readonly<Record<string, unknown>>): boolean {
  return search["all"] === true || search["all"] === "true";
}

/** Whether the page shows all namespaces; the service decides who may see them. */
export function useOfAll(): boolean {
  const search = useSearch({ strict: false }) as Record<string, unknown>;
  return useSession().everywhere && asksForAll(search);
}
