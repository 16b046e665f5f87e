import { describe, expect, it } from "vitest";
import { fitted, moved, opened, showing, zoomed, type Size, type Viewport } from "./viewport";

const FRAME: Size = { width: 800, height: 400 };
const LARGE: Size = { width: 8_000, height: 4_000 };

describe("viewport", () => {
  it.each<[name: string, drawing: Size, view: Viewport]>([
    ["a small one in the middle, not enlarged", { width: 400, height: 100 }, { x: -200, y: -150, scale: 1 }],
    ["a wide one as a whole", { width: 1_600, height: 100 }, { x: 0, y: -350, scale: 0.5 }],
    ["nothing at all", { width: 0, height: 0 }, { x: -400, y: -200, scale: 1 }],
  ])("fits %s", (_, drawing, view) => {
    expect(fitted(drawing, FRAME)).toEqual(view);
  });

  it("opens what would be unreadable at its beginning", () => {
    expect(opened(LARGE, FRAME)).toMatchObject({ x: 0, scale: 0.55 });
    expect(opened({ width: 900, height: 100 }, FRAME)).toEqual(fitted({ width: 900, height: 100 }, FRAME));
  });

  it("zooms around the pointer, within bounds", () => {
    const view = { x: 1_000, y: 1_000, scale: 1 };
    const closer = zoomed(view, 2, [200, 100], LARGE, FRAME);
    expect([closer.x + 200 / closer.scale, closer.y + 100 / closer.scale]).toEqual([1_200, 1_100]);
    expect(zoomed(view, 1e9, [0, 0], LARGE, FRAME).scale).toBe(2);
    expect(zoomed(view, 1e-9, [0, 0], LARGE, FRAME).scale).toBe(0.05);
  });

  it("does not leave the drawing", () => {
    expect(moved({ x: 0, y: 0, scale: 1 }, -50, -50, LARGE, FRAME)).toEqual({ x: 0, y: 0, scale: 1 });
    expect(moved({ x: 0, y: 0, scale: 1 }, 1e6, 1e6, LARGE, FRAME)).toEqual({ x: 7_200, y: 3_600, scale: 1 });
  });

  it("moves only as far as a box needs", () => {
    const view = { x: 1_000, y: 1_000, scale: 1 };
    expect(showing(view, { x: 1_100, y: 1_100, width: 100, height: 50 }, LARGE, FRAME)).toEqual(view);
    expect(showing(view, { x: 2_000, y: 1_100, width: 100, height: 50 }, LARGE, FRAME)).toEqual({
      x: 1_312,
      y: 1_000,
      scale: 1,
    });
    expect(showing(view, { x: 500, y: 500, width: 100, height: 50 }, LARGE, FRAME)).toEqual({
      x: 488,
      y: 488,
      scale: 1,
    });
  });
});
