import { describe, expect, it } from "vitest";
import { layersOf, layoutOf, neighbour, NODE, pathOf, type GraphEdge, type GraphNode } from "./graphLayout";
import { conditionText, workflowGraph } from "./workflowGraph";

const edge = (pair: string): GraphEdge => ({ from: pair[0]!, to: pair[1]!, condition: null });
const node = (id: string): GraphNode => ({ id, title: id, kind: "noop" });

describe("layersOf", () => {
  it.each<[name: string, ids: string, edges: string[], layers: Record<string, number>]>([
    ["nothing", "", [], {}],
    ["one alone", "a", [], { a: 0 }],
    ["a chain", "abc", ["ab", "bc"], { a: 0, b: 1, c: 2 }],
    ["a diamond", "abcd", ["ab", "ac", "bd", "cd"], { a: 0, b: 1, c: 1, d: 2 }],
    ["the longest way counts", "abcd", ["ab", "bc", "cd", "ad"], { a: 0, b: 1, c: 2, d: 3 }],
    ["given in any order", "dcba", ["cd", "bc", "ab"], { a: 0, b: 1, c: 2, d: 3 }],
    ["an edge to nothing", "ab", ["ax", "xb", "ab"], { a: 0, b: 1 }],
    ["an edge to itself", "a", ["aa"], { a: 0 }],
    ["a cycle is broken at the first node", "abc", ["ab", "bc", "ca"], { a: 0, b: 1, c: 2 }],
    ["a circle behind a beginning", "abc", ["ab", "bc", "cb"], { a: 0, b: 1, c: 2 }],
    ["the same edge twice", "ab", ["ab", "ab"], { a: 0, b: 1 }],
  ])("%s", (_, ids, edges, layers) => {
    expect(Object.fromEntries(layersOf([...ids], edges.map(edge)))).toEqual(layers);
  });
});

function boxesOverlap(layout: ReturnType<typeof layoutOf>): boolean {
  return layout.layers.some((layer) =>
    layer.some((id, row) => row > 0 && layout.places.get(id)!.y < layout.places.get(layer[row - 1]!)!.y + NODE.height),
  );
}

describe("layoutOf", () => {
  it("draws a chain on one line", () => {
    const layout = layoutOf([..."abc"].map(node), ["ab", "bc"].map(edge));
    expect(new Set([...layout.places.values()].map((place) => place.y)).size).toBe(1);
    expect(layout.lines.map((line) => pathOf(line.points))).toEqual(["M202 37H270", "M458 37H526"]);
  });

  it("uncrosses what can be uncrossed", () => {
    const layout = layoutOf([..."abxy"].map(node), ["ay", "bx"].map(edge));
    expect(layout.layers).toEqual([
      ["a", "b"],
      ["y", "x"],
    ]);
  });

  it("leads a long edge around what stands between", () => {
    const layout = layoutOf([..."abc"].map(node), ["ab", "bc", "ac"].map(edge));
    const { points } = layout.lines[2]!;
    const { y } = layout.places.get("b")!;
    expect(points).toHaveLength(4);
    expect(points[1]![1] < y || points[1]![1] > y + NODE.height).toBe(true);
  });

  it.each<[name: string, count: number, edges: (n: number) => GraphEdge[]]>([
    ["a thousand at once", 1_000, () => []],
    [
      "a fan and its end",
      1_000,
      (n) =>
        spread(n, (i) => [
          [0, i],
          [i, n - 1],
        ]),
    ],
    ["a chain of a thousand", 1_000, (n) => spread(n, (i) => [[i - 1, i]])],
    [
      "ten thousand edges",
      1_000,
      (n) =>
        spread(n, (i) => Array.from({ length: 10 }, (_, j): [number, number] => [Math.floor((i * (j + 1)) / 11), i])),
    ],
  ])("%s: no nodes overlap, and all are inside", (_, count, edges) => {
    const nodes = Array.from({ length: count }, (_each, index) => node(String(index)));
    const layout = layoutOf(nodes, edges(count));
    expect(boxesOverlap(layout)).toBe(false);
    for (const { x, y } of layout.places.values()) {
      expect(x >= 0 && x + NODE.width <= layout.width && y >= 0 && y + NODE.height <= layout.height).toBe(true);
    }
  });

  it("takes an empty graph", () => {
    expect(layoutOf([], []).places.size).toBe(0);
  });
});

function spread(count: number, pairs: (index: number) => [number, number][]): GraphEdge[] {
  return Array.from({ length: count - 1 }, (_, index) => pairs(index + 1))
    .flat()
    .map(([from, to]) => ({ from: String(from), to: String(to), condition: null }));
}

describe("neighbour", () => {
  const layout = layoutOf([..."abcd"].map(node), ["ab", "ac", "bd", "cd"].map(edge));
  const [upper, lower] = layout.layers[1]!;
  it.each<[from: string, key: string, to: string | null]>([
    ["a", "ArrowRight", upper!],
    ["a", "ArrowLeft", null],
    [upper!, "ArrowDown", lower!],
    [upper!, "ArrowUp", null],
    ["d", "ArrowLeft", upper!],
    ["a", "Enter", null],
    ["unknown", "ArrowRight", null],
  ])("%s %s", (from, key, to) => {
    expect(neighbour(layout, from, key)).toBe(to);
  });
});

describe("workflowGraph", () => {
  it("puts needs and edges together, the condition wins", () => {
    const { nodes, edges } = workflowGraph({
      nodes: [
        { id: "fetch", action: { kind: "python", task: "rows.fetch" } },
        { id: "alert", name: "Tell them", needs: ["fetch"], action: { kind: "http", url: "x" } },
      ],
      edges: [{ source: "fetch", target: "alert", condition: { "/result/rows": { eq: 0 } } }],
    });
    expect(nodes).toEqual([
      { id: "fetch", title: "fetch", kind: "python rows.fetch" },
      { id: "alert", title: "Tell them", kind: "http" },
    ]);
    expect(edges).toEqual([{ from: "fetch", to: "alert", condition: "/result/rows eq 0" }]);
  });

  it.each<[name: string, document: unknown]>([
    ["null", null],
    ["a text", "x"],
    ["nodes that are none", { nodes: [1, null, { id: 3 }, {}], edges: [null, { from: 1 }] }],
    ["nodes that are no list", { nodes: { a: 1 }, edges: "b" }],
  ])("reads %s as nothing", (_, document) => {
    expect(workflowGraph(document)).toEqual({ nodes: [], edges: [] });
  });
});

describe("conditionText", () => {
  it.each<[condition: unknown, text: string]>([
    [{}, "always"],
    [{ "/a": { eq: 1 } }, "/a eq 1"],
    [{ "/a": { ge: 1, le: 2 }, "/b": { exists: true } }, "/a ge 1, le 2 and /b exists true"],
    [{ "/a": 3 }, "/a 3"],
    ["odd", '"odd"'],
  ])("%j", (condition, text) => {
    expect(conditionText(condition)).toBe(text);
  });
});
