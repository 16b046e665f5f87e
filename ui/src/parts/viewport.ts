// The visible part of a drawing: pan and zoom. Pure functions.

export interface Viewport {
  /** The point of the drawing in the upper left corner of the frame. */
  x: number;
  y: number;
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

const SMALLEST = 0.05;
const LARGEST = 2;
// Names are illegible below this scale: a large graph opens at its start instead of fitted.
const READABLE = 0.55;

/** Fit the drawing, centered, at most at scale 1. */
export function fitted(drawing: Size, frame: Size): Viewport {
  const scale = clamp(
    Math.min(1, frame.width / Math.max(1, drawing.width), frame.height / Math.max(1, drawing.height)),
  );
  return held({ x: 0, y: 0, scale }, drawing, frame);
}

/** Fit the drawing if it is legible, else show its start. */
export function opened(drawing: Size, frame: Size): Viewport {
  const whole = fitted(drawing, frame);
  if (whole.scale >= READABLE) return whole;
  return held({ x: 0, y: (drawing.height - frame.height / READABLE) / 2, scale: READABLE }, drawing, frame);
}

/** The point of the drawing under `at` (in the frame) stays where it is. */
export function zoomed(
  view: Viewport,
  factor: number,
  at: readonly [number, number],
  drawing: Size,
  frame: Size,
): Viewport {
  const scale = clamp(view.scale * factor);
  const [x, y] = [view.x + at[0] / view.scale, view.y + at[1] / view.scale];
  return held({ x: x - at[0] / scale, y: y - at[1] / scale, scale }, drawing, frame);
}

export function moved(view: Viewport, dx: number, dy: number, drawing: Size, frame: Size): Viewport {
  return held({ ...view, x: view.x + dx / view.scale, y: view.y + dy / view.scale }, drawing, frame);
}

/** Pan as little as needed to show the box. */
export function showing(view: Viewport, box: Size & { x: number; y: number }, drawing: Size, frame: Size): Viewport {
  const margin = 12 / view.scale;
  const nudge = (from: number, seen: number, low: number, high: number) =>
    low - margin < from ? low - margin : high + margin > from + seen ? high + margin - seen : from;
  const x = nudge(view.x, frame.width / view.scale, box.x, box.x + box.width);
  const y = nudge(view.y, frame.height / view.scale, box.y, box.y + box.height);
  return held({ ...view, x, y }, drawing, frame);
}

/** Center a drawing that is smaller than the frame; keep a larger one within it. */
function held(view: Viewport, drawing: Size, frame: Size): Viewport {
  const within = (from: number, whole: number, seen: number) =>
    whole <= seen ? (whole - seen) / 2 : Math.min(Math.max(from, 0), whole - seen);
  return {
    scale: view.scale,
    x: within(view.x, drawing.width, frame.width / view.scale),
    y: within(view.y, drawing.height, frame.height / view.scale),
  };
}

function clamp(scale: number): number {
  return Math.min(LARGEST, Math.max(SMALLEST, scale));
}
