// Tells what the keys do.
import { Dialog } from "../parts/Dialog";
import { KEYS } from "./keys";

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose} wide>
      {/* There is nothing else here for the keys to scroll by. */}
      <div className="columns" role="group" aria-label="Keys" tabIndex={0}>
        {KEYS.map(([where, told]) => (
          <section key={where} className="stack keys" aria-label={where}>
            <h3>{where}</h3>
            <dl className="facts">
              {told.map(([keys, text]) => (
                <div key={text} style={{ display: "contents" }}>
                  <dt>
                    {keys.map((key) => (
                      <kbd key={key} className="key">
                        {key}
                      </kbd>
                    ))}
                  </dt>
                  <dd>{text}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
