// One approval request with its current votes.
import { useRead } from "../../api/hooks";
import type { Approval } from "./questions";

/** The stream has events for requests and decisions only, so votes are polled. */
export function useApproval(approvalId: string) {
  return useRead("/api/approvals/{approval_id}", { path: { approval_id: approvalId } }, { everySeconds: untilDecided });
}

function untilDecided(found: Approval | undefined): number | null {
  return found?.status === "pending" && found.approvals_required > 1 ? 3 : null;
}
