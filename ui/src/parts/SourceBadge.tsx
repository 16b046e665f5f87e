// The source of a schedule: the next apply overwrites a managed schedule and leaves a manual one unchanged.
import type { Schemas } from "../api/client";

export function SourceBadge({ source }: { source: Schemas["Schedule"]["source"] }) {
  const isTemplate = source === "template";
  return <span className={`badge ${isTemplate ? "tone-info" : ""}`}>{isTemplate ? "Managed" : "Manual"}</span>;
}
