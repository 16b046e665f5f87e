// The policies that an agent or a team adds to its runs.
import { Card } from "../../parts/Page";
import { Json } from "../../parts/Json";

export function OwnPolicies({ policies }: { policies: Readonly<Record<string, unknown>> }) {
  return (
    <Card title="Policies">
      {Object.keys(policies).length > 0 ? (
        <Json value={policies} label="Policies" />
      ) : (
        <p className="muted">None. The policies of the schedule and the defaults apply.</p>
      )}
    </Card>
  );
}
