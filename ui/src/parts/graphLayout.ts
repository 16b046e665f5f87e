// The layout of a graph: nodes in columns after their dependencies, with few crossings. Pure functions.

export interface GraphNode {
  id: string;
  title: string;
  /** The kind of the action. */
  kind: string;
}

export interface GraphEdge {
  from: string;
  to: string;
  /** The condition of the edge as text; null = always. */
  condition: string | null;
}

export interface Place {
  id: string;
  x: number;
  y: number;
  layer: number;
  row: number;
}

export interface Line {
  edge: GraphEdge;
  points: readonly (readonly [x: number, y: number])[];
}

export interface Layout {
  width: number;
  height: number;
  places: ReadonlyMap<string, Place>;
  /** The ids of each column, from the top. */
  layers: readonly (readonly string[])[];
  lines: readonly Line[];
}

export const NODE = { width: 188, height: 46 } as const;
const GAP = { x: 68, y: 18, margin: 14 } as const;
const SWEEPS = 6;
// A long edge bends around the nodes between; beyond this number of bends all edges are straight.
const MOST_BENDS = 4_000;

/** The column of a node is the length of the longest path to it, without cycles and dangling edges. */
export function layersOf(ids: readonly string[], edges: readonly GraphEdge[]): Map<string, number> {
  const known = new Set(ids);
  const out = new Map<string, string[]>();
  const waits = new Map(ids.map((id) => [id, 0]));
  for (const { from, to } of edges) {
    if (!known.has(from) || !known.has(to) || from === to) continue;
    (out.get(from) ?? out.set(from, []).get(from)!).push(to);
    waits.set(to, waits.get(to)! + 1);
  }
  const layers = new Map<string, number>();
  const found = new Map(ids.map((id) => [id, 0]));
  const ready = ids.filter((id) => waits.get(id) === 0);
  let left = 0; // start of the search for a node that breaks a cycle
  for (let at = 0; layers.size < known.size; at += 1) {
    if (at >= ready.length) {
      while (layers.has(ids[left]!)) left += 1;
      ready.push(ids[left]!);
    }
    const id = ready[at]!;
    if (layers.has(id)) continue;
    layers.set(id, found.get(id)!);
    for (const next of out.get(id) ?? []) {
      if (layers.has(next)) continue;
      found.set(next, Math.max(found.get(next)!, found.get(id)! + 1));
      waits.set(next, waits.get(next)! - 1);
      if (waits.get(next) === 0) ready.push(next);
    }
  }
  return layers;
}

interface Cell {
  id: string;
  layer: number;
  y: number;
  before: Cell[];
  after: Cell[];
}

export function layoutOf(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): Layout {
  const ids = [...new Set(nodes.map((node) => node.id))];
  const layerOf = layersOf(ids, edges);
  const cells = new Map(ids.map((id) => [id, cell(id, layerOf.get(id)!)]));
  const columns: Cell[][] = [];
  for (const each of cells.values()) (columns[each.layer] ??= []).push(each);
  const forward = edges.filter(
    ({ from, to }) => layerOf.has(from) && layerOf.has(to) && layerOf.get(from)! < layerOf.get(to)!,
  );
  const bends = forward.reduce((sum, { from, to }) => sum + layerOf.get(to)! - layerOf.get(from)! - 1, 0);
  const ways = forward.map((edge) => ({ edge, way: wayOf(edge, cells, columns, bends <= MOST_BENDS) }));
  order(columns);
  settle(columns);
  return drawn(columns, cells, ways);
}

function cell(id: string, layer: number): Cell {
  return { id, layer, y: 0, before: [], after: [] };
}

/** The cells of an edge: an unnamed one in each column between. */
function wayOf(edge: GraphEdge, cells: Map<string, Cell>, columns: Cell[][], bent: boolean): Cell[] {
  const [first, last] = [cells.get(edge.from)!, cells.get(edge.to)!];
  const way = [first];
  for (let layer = first.layer + 1; bent && layer < last.layer; layer += 1) {
    const between = cell("", layer);
    columns[layer]!.push(between);
    way.push(between);
  }
  way.push(last);
  for (let at = 1; at < way.length; at += 1) {
    way[at - 1]!.after.push(way[at]!);
    way[at]!.before.push(way[at - 1]!);
  }
  return way;
}

/** Order each column by the mean position of its neighbours, forwards and backwards. */
function order(columns: Cell[][]): void {
  for (const column of columns) column.forEach((each, index) => (each.y = index));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forth = sweep % 2 === 0;
    for (const column of forth ? columns : [...columns].reverse()) {
      const middles = new Map(column.map((each) => [each, middle(forth ? each.before : each.after) ?? each.y]));
      column.sort((one, other) => middles.get(one)! - middles.get(other)!);
      column.forEach((each, index) => (each.y = index));
    }
  }
}

function middle(cells: readonly Cell[]): number | null {
  return cells.length === 0 ? null : cells.reduce((sum, each) => sum + each.y, 0) / cells.length;
}

const heightOf = (each: Cell) => (each.id === "" ? GAP.y : NODE.height + GAP.y);

/** Heights: as near to the middle of the neighbours as the order allows. `y` is the middle of a cell from here on. */
function settle(columns: Cell[][]): void {
  for (const column of columns)
    stackUp(
      column,
      column.map((_, index) => index),
    );
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forth = sweep % 2 === 0;
    for (const column of forth ? columns : [...columns].reverse()) {
      stackUp(
        column,
        column.map((each) => middle(forth ? each.before : each.after) ?? each.y),
      );
    }
  }
  const top = columns.reduce((least, column) => Math.min(least, column[0]!.y - NODE.height / 2), Infinity);
  for (const column of columns) for (const each of column) each.y -= top;
}

/** Resolve overlaps downwards, then move the column up by the average shift. */
function stackUp(column: Cell[], wished: readonly number[]): void {
  let lowest = -Infinity;
  let pushed = 0;
  column.forEach((each, index) => {
    each.y = Math.max(wished[index]!, lowest + heightOf(each) / 2);
    lowest = each.y + heightOf(each) / 2;
    pushed += each.y - wished[index]!;
  });
  for (const each of column) each.y -= pushed / column.length;
}

function drawn(columns: Cell[][], cells: Map<string, Cell>, ways: readonly { edge: GraphEdge; way: Cell[] }[]): Layout {
  const left = (each: Cell) => GAP.margin + each.layer * (NODE.width + GAP.x);
  const level = (each: Cell) => GAP.margin + each.y;
  const layers = columns.map((column) => column.filter((each) => each.id !== "").map((each) => each.id));
  const places = new Map<string, Place>();
  for (const column of layers) {
    column.forEach((id, row) => {
      const each = cells.get(id)!;
      places.set(id, { id, x: left(each), y: level(each) - NODE.height / 2, layer: each.layer, row });
    });
  }
  const lines = ways.map(({ edge, way }) => ({
    edge,
    points: way.flatMap((each, at) => crossing(left(each), level(each), at, way.length)),
  }));
  let lowest = 0;
  for (const { y } of places.values()) lowest = Math.max(lowest, y + NODE.height);
  for (const { points } of lines) for (const [, y] of points) lowest = Math.max(lowest, y);
  return {
    width: GAP.margin * 2 + Math.max(columns.length, 1) * (NODE.width + GAP.x) - GAP.x,
    height: lowest + GAP.margin,
    places,
    layers,
    lines,
  };
}

/** The points of an edge, from the right of its first node to the left of its last one. */
function crossing(x: number, y: number, at: number, many: number): [number, number][] {
  const right: [number, number] = [x + NODE.width, y];
  if (at === 0) return [right];
  return at === many - 1 ? [[x, y]] : [[x, y], right];
}

/** The path of an edge: curves between columns, straight along a column that it only passes. */
export function pathOf(points: Line["points"]): string {
  const [first, ...rest] = points;
  if (first === undefined) return "";
  let [x, y] = first;
  let path = `M${round(x)} ${round(y)}`;
  for (const [nextX, nextY] of rest) {
    const bend = (nextX - x) / 2;
    path +=
      y === nextY
        ? `H${round(nextX)}`
        : `C${round(x + bend)} ${round(y)} ${round(nextX - bend)} ${round(nextY)} ${round(nextX)} ${round(nextY)}`;
    [x, y] = [nextX, nextY];
  }
  return path;
}

const round = (value: number) => Math.round(value * 10) / 10;

/** The node that an arrow key moves to; null = none. */
export function neighbour(layout: Layout, id: string, key: string): string | null {
  const place = layout.places.get(id);
  if (place === undefined) return null;
  if (key === "ArrowUp" || key === "ArrowDown") {
    return layout.layers[place.layer]![place.row + (key === "ArrowDown" ? 1 : -1)] ?? null;
  }
  if (key === "ArrowRight")
    return nearest(
      layout,
      place,
      layout.lines.filter(({ edge }) => edge.from === id).map(({ edge }) => edge.to),
      1,
    );
  if (key === "ArrowLeft")
    return nearest(
      layout,
      place,
      layout.lines.filter(({ edge }) => edge.to === id).map(({ edge }) => edge.from),
      -1,
    );
  return null;
}

/** The connected node, or else the node of the next column, at about the same height. */
function nearest(layout: Layout, from: Place, tied: readonly string[], step: 1 | -1): string | null {
  const candidates = tied.length > 0 ? tied : (layout.layers[from.layer + step] ?? []);
  const away = (id: string) => Math.abs(layout.places.get(id)!.y - from.y);
  return candidates.reduce<string | null>((best, id) => (best === null || away(id) < away(best) ? id : best), null);
}
