// How much of what an agent can do at a time it is doing.
export function Capacity({ active, capacity }: { active?: number | null; capacity: number }) {
  if (active == null) return <span className="muted">up to {capacity}</span>;
  const share = capacity === 0 ? 0 : Math.min(1, active / capacity);
  return (
    <div
      className="capacity"
      role="meter"
      aria-label="Busy"
      aria-valuemin={0}
      aria-valuemax={capacity}
      aria-valuenow={active}
    >
      <span className="nowrap">
        {active} of {capacity}
      </span>
      <div className="progress">
        <div style={{ width: `${share * 100}%` }} />
      </div>
    </div>
  );
}
