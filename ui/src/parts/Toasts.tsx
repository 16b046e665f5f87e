// Short messages after a write. They disappear after a few seconds and are announced to screen readers.
import { createContext, useCallback, useContext, useMemo, useRef, useState, type ReactNode } from "react";
import type { Tone } from "../marks/outcomes";

interface Toast {
  id: number;
  text: string;
  tone: Tone;
}

const SHOWN_MS = 6_000;
const WARNING_MS = 15_000;
const ToastContext = createContext<(text: string, tone?: Tone) => void>(() => undefined);

/** Show a message after a write. A failure is shown as a note in its form instead. */
export function useSay(): (text: string, tone?: Tone) => void {
  return useContext(ToastContext);
}

export function Toasts({ children }: { children: ReactNode }) {
  const [shown, setShown] = useState<readonly Toast[]>([]);
  const latest = useRef(0);
  const say = useCallback((text: string, tone: Tone = "ok") => {
    const id = (latest.current += 1);
    setShown((now) => [...now.slice(-3), { id, text, tone }]);
    setTimeout(() => setShown((now) => now.filter((each) => each.id !== id)), tone === "warn" ? WARNING_MS : SHOWN_MS);
  }, []);
  const list = useMemo(() => shown, [shown]);
  return (
    <ToastContext value={say}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {list.map((each) => (
          <div key={each.id} className={`note tone-${each.tone}`}>
            {each.text}
          </div>
        ))}
      </div>
    </ToastContext>
  );
}
