// Tells what the keys do.
import { Dialog } from "../parts/Dialog";
import { PLACES } from "./keys";

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className="facts">
        <dt>
          <span className="key">/</span>
        </dt>
        <dd>find schedules</dd>
        <dt>
          <span className="key">j</span> <span className="key">k</span>
        </dt>
        <dd>next and previous row; Enter opens it</dd>
        <dt>
          <span className="key">?</span>
        </dt>
        <dd>this list</dd>
        {Object.entries(PLACES).map(([key, [, text]]) => (
          <div key={key} style={{ display: "contents" }}>
            <dt>
              <span className="key">g</span> <span className="key">{key}</span>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
