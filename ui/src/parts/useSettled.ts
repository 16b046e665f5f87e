// A value once nobody has changed it for a moment: what is typed is asked about when it is typed.
import { useEffect, useState } from "react";

const PAUSE_MS = 300;

export function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
