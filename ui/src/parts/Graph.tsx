// The graph of a workflow with the conditions of its edges and the states of its nodes. It can be panned and zoomed;
// arrow keys move along its edges, and a list below it has the same content.
import { memo, useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { MarkShape } from "../marks/Mark";
import type { Look } from "../marks/outcomes";
import { Button } from "./Button";
import {
  layoutOf,
  neighbour,
  NODE,
  pathOf,
  type GraphEdge,
  type GraphNode,
  type Layout,
  type Line,
  type Place,
} from "./graphLayout";
import "./graph.css";
import { fitted, moved, opened, showing, zoomed, type Size, type Viewport } from "./viewport";

export type { GraphEdge, GraphNode };

export interface NodeState {
  look: Look;
  /** A reason or an attempt. */
  note?: string | null;
}

interface Props {
  nodes: readonly GraphNode[];
  edges: readonly GraphEdge[];
  states?: ReadonlyMap<string, NodeState>;
  onNode?: (id: string) => void;
  chosen?: string | null;
  label?: string;
}

const TALLEST = 440;
// Below these scales text would be illegible, so it is not drawn.
const NAMES_FROM = 0.4;
const CONDITIONS_FROM = 0.55;
const STEP = 1.35;

export function Graph({ nodes, edges, states, onNode, chosen, label = "Workflow graph" }: Props) {
  const layout = useMemo(() => layoutOf(nodes, edges), [nodes, edges]);
  const [listed, setListed] = useState(false);
  if (nodes.length === 0) return <p className="muted">No nodes yet</p>;
  return (
    <div className="stack">
      <Drawing {...{ nodes, layout, states, onNode, chosen, label }} />
      <details className="graph-list" onToggle={(event) => setListed(event.currentTarget.open)}>
        <summary>List view</summary>
        {listed ? <NodeList {...{ nodes, edges, states, onNode }} /> : null}
      </details>
    </div>
  );
}

interface DrawingProps extends Omit<Props, "edges"> {
  layout: Layout;
  label: string;
}

function Drawing({ nodes, layout, states, onNode, chosen, label }: DrawingProps) {
  const { frame, view, move, ref, grab } = useViewport(layout);
  const [current, setCurrent] = useState<string | null>(null);
  const stop = current !== null && layout.places.has(current) ? current : layout.layers[0]![0]!;
  const walk = (event: KeyboardEvent) => {
    const next = neighbour(layout, stop, event.key);
    if (next === null) return;
    event.preventDefault();
    setCurrent(next);
    move((now, seen) => showing(now, { ...NODE, ...layout.places.get(next)! }, layout, seen));
    requestAnimationFrame(() => ref.current?.querySelector<SVGElement>("[data-stop]")?.focus());
  };
  const focused = useCallback(
    (id: string) => {
      setCurrent(id);
      move((now, seen) => showing(now, { ...NODE, ...layout.places.get(id)! }, layout, seen));
    },
    [layout, move],
  );
  const middle: [number, number] = [frame.width / 2, frame.height / 2];
  const zoom = (factor: number) => move((now, seen) => zoomed(now, factor, middle, layout, seen));
  const seen = nodes.filter(({ id }) => id === stop || isSeen(layout.places.get(id), view, frame));
  return (
    <div className="graph" ref={ref}>
      <svg
        width="100%"
        height={frame.height}
        role="group"
        aria-label={`${label}; arrow keys move between nodes`}
        onKeyDown={walk}
        {...grab}
      >
        <defs>
          <clipPath id="graph-node">
            <rect width={NODE.width - 10} height={NODE.height} />
          </clipPath>
        </defs>
        <g transform={`scale(${view.scale}) translate(${-view.x} ${-view.y})`}>
          <Lines lines={layout.lines} />
          {view.scale >= CONDITIONS_FROM ? <Conditions lines={layout.lines} view={view} frame={frame} /> : null}
          {seen.map((node) => (
            <Node
              key={node.id}
              node={node}
              place={layout.places.get(node.id)!}
              state={states?.get(node.id)}
              named={view.scale >= NAMES_FROM}
              stop={node.id === stop}
              chosen={node.id === chosen}
              onOpen={onNode}
              onFocus={focused}
            />
          ))}
        </g>
      </svg>
      <div className="graph-tools">
        <Button small aria-label="Zoom in" onClick={() => zoom(STEP)}>
          +
        </Button>
        <Button small aria-label="Zoom out" onClick={() => zoom(1 / STEP)}>
          −
        </Button>
        <Button small onClick={() => move((_, frameNow) => fitted(layout, frameNow))}>
          Fit
        </Button>
      </div>
    </div>
  );
}

type Change = (now: Viewport, frame: Size) => Viewport;

/** The visible part, changed by dragging, by Ctrl and the wheel, and by the buttons. */
function useViewport(layout: Layout) {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const height = Math.min(TALLEST, Math.max(120, layout.height));
  const frame = useMemo(() => ({ width, height }), [width, height]);
  const [kept, setKept] = useState<{ layout: Layout; view: Viewport } | null>(null);
  const view = kept?.layout === layout ? kept.view : opened(layout, frame);
  const move = useCallback(
    (change: Change) =>
      setKept((old) => ({ layout, view: change(old?.layout === layout ? old.view : opened(layout, frame), frame) })),
    [layout, frame],
  );
  useEffect(() => {
    const watched = new ResizeObserver(([entry]) => setWidth(entry!.contentRect.width));
    watched.observe(ref.current!);
    return () => watched.disconnect();
  }, []);
  useEffect(() => {
    const element = ref.current!;
    const turned = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault(); // React's own listener is passive and cannot do this
      const box = element.getBoundingClientRect();
      const at: [number, number] = [event.clientX - box.left, event.clientY - box.top];
      move((now, seen) => zoomed(now, Math.exp(-event.deltaY / 300), at, layout, seen));
    };
    element.addEventListener("wheel", turned, { passive: false });
    return () => element.removeEventListener("wheel", turned);
  }, [layout, move]);
  const grab = useDragging((dx, dy) => move((now, seen) => moved(now, -dx, -dy, layout, seen)));
  return { ref, frame, view, move, grab };
}

/** A press that moves is a drag; one that does not stays a click. */
function useDragging(by: (dx: number, dy: number) => void) {
  const from = useRef<{ x: number; y: number; far: boolean } | null>(null);
  return {
    onPointerDown: (event: React.PointerEvent) => {
      if (event.button === 0) from.current = { x: event.clientX, y: event.clientY, far: false };
    },
    onPointerMove: (event: React.PointerEvent<SVGSVGElement>) => {
      const start = from.current;
      if (start === null) return;
      const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
      if (!start.far && Math.hypot(dx, dy) < 4) return;
      if (!start.far) event.currentTarget.setPointerCapture(event.pointerId);
      from.current = { x: event.clientX, y: event.clientY, far: true };
      by(dx, dy);
    },
    onPointerUp: () => {
      from.current = null;
    },
    onPointerCancel: () => {
      from.current = null;
    },
  };
}

function isSeen(place: Place | undefined, view: Viewport, frame: Size): boolean {
  if (place === undefined) return false;
  const right = view.x + frame.width / view.scale;
  const bottom = view.y + frame.height / view.scale;
  return place.x < right && place.x + NODE.width > view.x && place.y < bottom && place.y + NODE.height > view.y;
}

/** All edges are two paths, whatever their number: those with a condition are dashed. */
const Lines = memo(function Lines({ lines }: { lines: readonly Line[] }) {
  const path = (kept: readonly Line[]) => kept.map((line) => pathOf(line.points)).join("");
  const heads = lines.map(({ points }) => {
    const [x, y] = points[points.length - 1]!;
    return `M${x - 7} ${y - 4}L${x} ${y}L${x - 7} ${y + 4}Z`;
  });
  return (
    <g className="graph-lines" aria-hidden="true">
      <path d={path(lines.filter(({ edge }) => edge.condition === null))} />
      <path className="dashed" d={path(lines.filter(({ edge }) => edge.condition !== null))} />
      <path className="heads" d={heads.join("")} />
    </g>
  );
});

const MOST_LETTERS = 26;
const MOST_CONDITIONS = 60;

function Conditions({ lines, view, frame }: { lines: readonly Line[]; view: Viewport; frame: Size }) {
  const shown = lines
    .filter(({ edge }) => edge.condition !== null)
    .map(({ edge, points }) => ({
      edge,
      x: (points[0]![0] + points[1]![0]) / 2,
      y: (points[0]![1] + points[1]![1]) / 2,
    }))
    .filter(({ x, y }) =>
      isSeen({ id: "", x: x - NODE.width / 2, y: y - NODE.height / 2, layer: 0, row: 0 }, view, frame),
    )
    .slice(0, MOST_CONDITIONS);
  return (
    <g className="graph-conditions" aria-hidden="true">
      {shown.map(({ edge, x, y }) => (
        <text key={`${edge.from} ${edge.to}`} x={x} y={y - 5} textAnchor="middle">
          <title>{edge.condition}</title>
          {short(edge.condition!, MOST_LETTERS)}
        </text>
      ))}
    </g>
  );
}

interface NodeProps {
  node: GraphNode;
  place: Place;
  state: NodeState | undefined;
  named: boolean;
  stop: boolean;
  chosen: boolean;
  onOpen?: (id: string) => void;
  onFocus: (id: string) => void;
}

const Node = memo(function Node({ node, place, state, named, stop, chosen, onOpen, onFocus }: NodeProps) {
  const look = state?.look;
  const open = onOpen && (() => onOpen(node.id));
  const said = look ? [look.word, state.note].filter(Boolean).join(" · ") : node.kind;
  const [title, second] = [short(node.title, look ? 21 : 25), short(said, look ? 24 : 28)];
  const whole = `${node.title} ${said}${look ? `, ${node.kind}` : ""}`;
  // Voice control needs the visible text inside the accessible name.
  const label = whole.startsWith(`${title} ${second}`) ? whole : `${title} ${second}, ${whole}`;
  return (
    <g
      className={`graph-node${look ? ` tone-${look.tone}` : ""}${chosen ? " chosen" : ""}`}
      transform={`translate(${place.x} ${place.y})`}
      role={open ? "button" : "img"}
      aria-label={label}
      tabIndex={stop ? 0 : -1}
      data-stop={stop || undefined}
      onClick={open}
      onFocus={() => onFocus(node.id)}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        open?.();
      }}
    >
      <title>{whole}</title>
      <rect width={NODE.width} height={NODE.height} rx={7} />
      {look ? (
        <g className="mark" transform={`translate(11 ${NODE.height / 2 - 7}) scale(1.15)`}>
          <MarkShape shape={look.shape} />
        </g>
      ) : null}
      {named ? (
        <g clipPath="url(#graph-node)">
          <text className="title" x={look ? 34 : 12} y={19}>
            {title}
          </text>{" "}
          <text className="kind" x={look ? 34 : 12} y={35}>
            {second}
          </text>
        </g>
      ) : null}
    </g>
  );
});

function short(text: string, letters: number): string {
  const all = [...text];
  return all.length <= letters ? text : `${all.slice(0, letters - 1).join("")}…`;
}

function NodeList({ nodes, edges, states, onNode }: Pick<Props, "nodes" | "edges" | "states" | "onNode">) {
  const before = useMemo(() => {
    const found = new Map<string, GraphEdge[]>();
    for (const edge of edges) (found.get(edge.to) ?? found.set(edge.to, []).get(edge.to)!).push(edge);
    return found;
  }, [edges]);
  return (
    <ol>
      {nodes.map((node) => (
        <li key={node.id}>
          {onNode ? (
            <Button small kind="quiet" onClick={() => onNode(node.id)}>
              <bdi>{node.title}</bdi>
            </Button>
          ) : (
            <bdi>{node.title}</bdi>
          )}{" "}
          <span className="muted">
            {[states?.get(node.id)?.look.word, states?.get(node.id)?.note, node.kind, afterText(before.get(node.id))]
              .filter(Boolean)
              .join(" · ")}
          </span>
        </li>
      ))}
    </ol>
  );
}

function afterText(edges: readonly GraphEdge[] | undefined): string {
  if (edges === undefined) return "first";
  return `after ${edges.map(({ from, condition }) => (condition === null ? from : `${from} if ${condition}`)).join(", ")}`;
}
