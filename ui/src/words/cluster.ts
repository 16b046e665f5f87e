// The labels of the readiness checks. The service sends their names.
const CHECK_TEXTS: Readonly<Record<string, string>> = {
  migrated: "Schema",
  ticking: "Scheduler",
  deciding: "Scheduler lag",
  outcomes: "Schedules",
  feed: "Event feed",
};

/** Return the label of a readiness check; a name that is unknown here is shown as it is. */
export function checkText(name: string): string {
  if (Object.hasOwn(CHECK_TEXTS, name)) return CHECK_TEXTS[name]!;
  return name.charAt(0).toUpperCase() + name.slice(1);
}
