// The graph of a workflow document, merged from the `needs` of its nodes and its `edges`.
import type { GraphEdge, GraphNode } from "./graphLayout";

type Fields = Readonly<Record<string, unknown>>;

export interface WorkflowPicture {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

/** Read as much as possible: the document may be incomplete while the user types. */
export function workflowGraph(document: unknown): WorkflowPicture {
  const fields = fieldsOf(document);
  const nodes: GraphNode[] = [];
  const edges = new Map<string, GraphEdge>();
  for (const node of listOf(fields["nodes"]).map(fieldsOf)) {
    const id = textOf(node["id"]);
    if (id === "") continue;
    nodes.push({ id, title: textOf(node["name"]) || id, kind: actionKind(fieldsOf(node["action"])) });
    for (const before of listOf(node["needs"] ?? node["depends_on"] ?? node["dependsOn"]))
      add(edges, textOf(before), id, null);
  }
  for (const edge of listOf(fields["edges"]).map(fieldsOf)) {
    add(edges, textOf(edge["from"] ?? edge["source"]), textOf(edge["to"] ?? edge["target"]), edge["condition"] ?? null);
  }
  return { nodes, edges: [...edges.values()] };
}

/** Add an edge; of two equal edges, keep the one with a condition. */
function add(edges: Map<string, GraphEdge>, from: string, to: string, condition: unknown): void {
  const key = JSON.stringify([from, to]);
  const found = edges.get(key);
  if (from === "" || to === "" || (found !== undefined && condition === null)) return;
  edges.set(key, { from, to, condition: condition === null ? null : conditionText(condition) });
}

/** "/result/rows eq 0"; an empty condition is always met. */
export function conditionText(condition: unknown): string {
  if (condition === null || typeof condition !== "object") return JSON.stringify(condition) ?? "";
  const clauses: [string, unknown][] = Object.entries(condition);
  const texts = clauses.map(([path, test]) => {
    if (test === null || typeof test !== "object" || Array.isArray(test)) return `${path} ${JSON.stringify(test)}`;
    return `${path} ${Object.entries(test)
      .map(([operator, value]) => `${operator} ${JSON.stringify(value)}`)
      .join(", ")}`;
  });
  return texts.length === 0 ? "always" : texts.join(" and ");
}

/** The kind and its target, such as "python demo.send". */
export function actionKind(action: Fields): string {
  const kind = textOf(action["kind"]) || "action";
  const what = textOf(action["task"] ?? action["callable"] ?? action["workflow_id"] ?? action["workflow_type"]);
  return what === "" ? kind : `${kind} ${what}`;
}

function fieldsOf(value: unknown): Fields {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Fields) : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
