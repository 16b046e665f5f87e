// The texts of the details of a run.
import { ACTION_KINDS } from "./kinds";
import { POLICY_SOURCES } from "./policies";

const labelled = (labels: Readonly<Record<string, string>>, name: string) =>
  Object.hasOwn(labels, name) ? labels[name]! : name;

export const kindText = (kind: string) => labelled(ACTION_KINDS, kind);

/** The level that sets a policy; null if it is not recorded. */
export const sourceText = (source: string | null) => (source === null ? "—" : labelled(POLICY_SOURCES, source));
