// A state as a small shape with a text alternative.
import type { Look, Shape } from "./outcomes";

const PATHS: Record<Shape, { d: string; filled: boolean; dashed?: boolean }> = {
  disc: { d: "M6 1.5a4.5 4.5 0 1 1 0 9a4.5 4.5 0 1 1 0-9Z", filled: true },
  half: { d: "M6 1.5a4.5 4.5 0 1 1 0 9a4.5 4.5 0 1 1 0-9ZM6 1.5v9a4.5 4.5 0 0 1 0-9Z", filled: false },
  cross: { d: "M2.2 2.2l7.6 7.6M9.8 2.2l-7.6 7.6", filled: false },
  alert: { d: "M4 1.2h4L10.8 4v4L8 10.8H4L1.2 8V4ZM6 3.4v3M6 8.4v.2", filled: false },
  diamond: { d: "M6 1.2 10.8 6 6 10.8 1.2 6Z", filled: false },
  triangle: { d: "M6 1.6 11 10.4H1Z", filled: false },
  bars: { d: "M3.6 2v8M8.4 2v8", filled: false },
  question: { d: "M1.8 1.8h8.4v8.4H1.8ZM6 3.6v2.8M6 8.2v.3", filled: false },
  ring: { d: "M6 2a4 4 0 1 1 0 8a4 4 0 1 1 0-8Z", filled: false },
  dash: { d: "M2 6h8", filled: false, dashed: true },
  slash: { d: "M6 1.5a4.5 4.5 0 1 1 0 9a4.5 4.5 0 1 1 0-9ZM2.9 9.1l6.2-6.2", filled: false },
  dot: { d: "M6 4a2 2 0 1 1 0 4a2 2 0 1 1 0-4Z", filled: true },
};

/** The shape alone, for use inside another SVG: 12 × 12, centered at 6, 6. */
export function MarkShape({ shape }: { shape: Shape }) {
  const { d, filled, dashed } = PATHS[shape];
  return (
    <path
      d={d}
      fill={filled ? "currentColor" : "none"}
      stroke="currentColor"
      strokeWidth={filled ? 0 : shape === "cross" || shape === "bars" ? 2.4 : 1.5}
      strokeLinecap="round"
      strokeLinejoin="round"
      strokeDasharray={dashed ? "2 2.4" : undefined}
    />
  );
}

export function Mark({ look, size = 12 }: { look: Look; size?: number }) {
  return (
    <svg
      viewBox="0 0 12 12"
      width={size}
      height={size}
      className={`tone-${look.tone}`}
      role="img"
      aria-label={look.word}
    >
      <MarkShape shape={look.shape} />
    </svg>
  );
}

/** The shape with its label. */
export function Badge({ look, text }: { look: Look; text?: string }) {
  return (
    <span className={`badge tone-${look.tone}`}>
      <svg viewBox="0 0 12 12" width={10} height={10} aria-hidden="true">
        <MarkShape shape={look.shape} />
      </svg>
      {text ?? look.word}
    </span>
  );
}
