// One question as it stands, with the voices that others have given in the meantime.
import { useRead } from "../../api/hooks";
import type { Approval } from "./questions";

/** The stream tells when a question is put and when it is decided; the voices before the last one are asked for. */
export function useApproval(approvalId: string) {
  return useRead("/api/approvals/{approval_id}", { path: { approval_id: approvalId } }, { everySeconds: untilDecided });
}

function untilDecided(found: Approval | undefined): number | null {
  return found?.status === "pending" && found.approvals_required > 1 ? 3 : null;
}
