// The dialog that lists the keyboard shortcuts.
import { Dialog } from "../parts/Dialog";
import { KEYS } from "./keys";

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose} wide>
      {/* Focusable, so that keys can scroll it. */}
      <div className="columns" role="group" aria-label="Keyboard shortcuts" tabIndex={0}>
        {KEYS.map(([where, shortcuts]) => (
          <section key={where} className="stack keys" aria-label={where}>
            <h3>{where}</h3>
            <dl className="facts">
              {shortcuts.map(([keys, text]) => (
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
