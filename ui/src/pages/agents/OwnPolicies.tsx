// The policies that an agent or a team adds to its work, as they are written.
import { Card } from "../../parts/Page";
import { Json } from "../../parts/Json";

export function OwnPolicies({ policies }: { policies: Readonly<Record<string, unknown>> }) {
  return (
    <Card title="Policies of its work">
      {Object.keys(policies).length > 0 ? (
        <Json value={policies} label="Policies" />
      ) : (
        <p className="muted">None of its own: those of the schedule and of the settings hold.</p>
      )}
    </Card>
  );
}
