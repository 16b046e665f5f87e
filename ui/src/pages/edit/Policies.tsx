// Effective policies of a run of this draft, each with its source.
import { Table } from "../../parts/Table";
import { useEditing } from "./editing";

const PARTS = ["approval_policy", "retry_policy", "failure_policy", "limits"] as const;

export function Policies() {
  const { draft } = useEditing();
  const policies = draft?.policies;
  if (!policies) return null;
  const rows = PARTS.flatMap((part) =>
    Object.entries(policies[part] ?? {}).map(([name, value]) => ({
      name: `${part}.${name}`,
      value: typeof value === "string" ? value : JSON.stringify(value),
      origin: policies.origins[`${part}.${name}`] ?? policies.origins[part] ?? "default",
    })),
  ).filter((row) => row.value !== "null" && row.value !== "[]");
  if (rows.length === 0) return null;
  return (
    <details className="policies">
      <summary>Effective policies ({rows.length})</summary>
      <Table heads={["Policy", "Value", "Source"]}>
        {rows.map((row) => (
          <tr key={row.name}>
            <td className="mono">{row.name}</td>
            <td className="mono">{row.value}</td>
            <td>
              <span className={row.origin === "default" ? "badge" : "badge tone-info"}>{row.origin}</span>
            </td>
          </tr>
        ))}
      </Table>
    </details>
  );
}
