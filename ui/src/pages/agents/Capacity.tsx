// The active runs of an agent and its concurrency limit.
export function Capacity({ active, capacity }: { active?: number | null; capacity: number }) {
  if (active == null) return <span className="muted">Max {capacity}</span>;
  const share = capacity === 0 ? 0 : Math.min(1, active / capacity);
  return (
    <div
      className="capacity"
      role="meter"
      aria-label="Active runs"
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
