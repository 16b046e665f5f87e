// The filters of approval requests, parsed from the address. Pure functions.
import type { Ask } from "../../api/client";
import { ALL_NAMESPACES, asksForAll } from "../../api/everywhere";
import type { Choice } from "../../parts/Field";
import { APPROVAL_LOOKS } from "./questions";

export interface ApprovalFilters {
  status: string;
  mine: boolean;
  gate: string;
  schedule: string;
  /** Of all namespaces. */
  all: boolean;
}

type Query = NonNullable<Ask<"/api/approvals", "get">["query"]>;

export const STATUS_CHOICES: readonly Choice[] = [
  ...Object.entries(APPROVAL_LOOKS).map(([status, look]): Choice => [status, look.word]),
  ["all", "Any status"],
];

const LONGEST = 500;

export function filtersOf(search: Readonly<Record<string, unknown>>): ApprovalFilters {
  const text = (name: string) => {
    const value = search[name];
    return typeof value === "string" || typeof value === "number" ? String(value).slice(0, LONGEST) : "";
  };
  return {
    status: STATUS_CHOICES.some(([value]) => value === text("status")) ? text("status") : "pending",
    mine: search["mine"] === true || search["mine"] === "true",
    gate: text("gate"),
    schedule: text("schedule"),
    all: asksForAll(search),
  };
}

export function searchOf(filters: ApprovalFilters): Record<string, unknown> {
  const { status, ...others } = filters;
  const given = Object.entries(others).map(([name, value]) => [name, value || undefined] as const);
  return { status: status === "pending" ? undefined : status, ...Object.fromEntries(given) };
}

export function queryOf(filters: ApprovalFilters): Query {
  return {
    status: filters.status,
    mine: filters.mine || undefined,
    gate: filters.gate || undefined,
    schedule_id: filters.schedule || undefined,
    namespace: filters.all ? ALL_NAMESPACES : undefined,
  };
}

export function isFiltered(filters: ApprovalFilters): boolean {
  return filters.status !== "pending" || filters.mine || filters.gate !== "" || filters.schedule !== "" || filters.all;
}
