// The fires that a change adds, removes and moves.
import type { ReactNode } from "react";
import type { Schemas } from "../api/client";
import { When } from "./When";
import "./fires.css";

const MOST_SHOWN = 10;

export function FireChanges({ changes, zone }: { changes: Schemas["FireChanges"]; zone: string }) {
  const { added, removed, moved, until, bounded } = changes;
  const nothing = added.length + removed.length + moved.length === 0;
  return (
    <div className="fire-changes">
      {nothing ? (
        <p>
          No changes to fires until <When at={until} zone={zone} absolute />.
        </p>
      ) : (
        <>
          <div className="columns">
            <Group
              sign="+"
              tone="ok"
              title={counted(added.length, "added")}
              rows={added.map((at) => (
                <When key={at} at={at} zone={zone} absolute />
              ))}
            />
            <Group
              sign="−"
              tone="bad"
              title={counted(removed.length, "removed")}
              rows={removed.map((at) => (
                <When key={at} at={at} zone={zone} absolute />
              ))}
            />
            <Group
              sign="→"
              tone="info"
              title={counted(moved.length, "moved")}
              rows={moved.map((each) => (
                <span key={each.from} className="moved">
                  <When at={each.from} zone={zone} absolute />
                  <span className="moved-to">
                    <span aria-hidden="true">→ </span>
                    <span className="visually-hidden">to </span>
                    <When at={each.to} zone={zone} absolute />
                  </span>
                </span>
              ))}
            />
          </div>
          <p className="muted small">
            Until <When at={until} zone={zone} absolute />
            {bounded ? " (limit reached; later fires were not compared)." : "."}
          </p>
        </>
      )}
    </div>
  );
}

function counted(many: number, word: string): string {
  return `${many} ${many === 1 ? "fire" : "fires"} ${word}`;
}

function Group({ sign, tone, title, rows }: { sign: string; tone: string; title: string; rows: readonly ReactNode[] }) {
  if (rows.length === 0) return null;
  return (
    <div className="stack fire-group">
      <h4 className={`tone-${tone}`}>
        <span aria-hidden="true">{sign} </span>
        {title}
      </h4>
      <ul className="plain">
        {rows.slice(0, MOST_SHOWN).map((row, index) => (
          <li key={index}>{row}</li>
        ))}
        {rows.length > MOST_SHOWN ? <li className="muted">and {rows.length - MOST_SHOWN} more</li> : null}
      </ul>
    </div>
  );
}
