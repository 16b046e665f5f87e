// Observes the width of an element.
import { useLayoutEffect, useState, type RefObject } from "react";

export function useWidth(element: RefObject<HTMLElement | null>, first = 600): number {
  const [width, setWidth] = useState(first);
  useLayoutEffect(() => {
    const watched = element.current;
    if (watched === null) return undefined;
    setWidth(watched.clientWidth || first);
    const observer = new ResizeObserver(() => setWidth(watched.clientWidth || first));
    observer.observe(watched);
    return () => observer.disconnect();
  }, [element, first]);
  return width;
}
