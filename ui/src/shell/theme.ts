// The theme (light, dark or system), stored in this browser.
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";
const KEY = "horarium.theme";
const watchers = new Set<() => void>();
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function kept(): Theme {
  const found = localStorage.getItem(KEY);
  return found === "light" || found === "dark" ? found : "system";
}

function put(): void {
  const theme = kept();
  document.documentElement.dataset["theme"] = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
  for (const each of watchers) each();
}

export function beginTheme(): void {
  dark.addEventListener("change", put);
  put();
}

export function chooseTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  put();
}

export function useTheme(): Theme {
  return useSyncExternalStore((changed) => {
    watchers.add(changed);
    return () => watchers.delete(changed);
  }, kept);
}
