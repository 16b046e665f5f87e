// The source of a schedule: the next apply overwrites a managed schedule and leaves a manual one unchanged.
import type { Schemas } from "../api/client";
import { SOURCE_TEXTS } from "../words";

export function SourceBadge({ source }: { source: Schemas["Schedule"]["source"] }) {
  const isTemplate = source === "template";
  return <span className={`badge ${isTemplate ? "tone-info" : ""}`}>{SOURCE_TEXTS[source]}</span>;
}
