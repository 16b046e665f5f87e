// Where a schedule comes from: what a template brought is written anew with it, and what was made here is left alone.
import type { Schemas } from "../api/client";

export function SourceBadge({ source }: { source: Schemas["Schedule"]["source"] }) {
  const isTemplate = source === "template";
  return (
    <span className={`badge ${isTemplate ? "tone-info" : ""}`}>{isTemplate ? "from a template" : "made here"}</span>
  );
}
