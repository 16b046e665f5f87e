// Fills in the defaults that the API omits from a schedule.
import type { Schemas } from "../../api/client";

type Told = Schemas["Schedule"];

export interface WholeSchedule extends Told {
  spec: Told["spec"] & { timezone: string };
  calendars: string[];
  inputs_rotation: unknown[];
  pre_dispatch_condition: NonNullable<Told["pre_dispatch_condition"]> | null;
  concurrency_limit: number;
}

export function whole(told: Told): WholeSchedule {
  return {
    ...told,
    spec: { ...told.spec, timezone: told.spec.timezone ?? "UTC" },
    calendars: told.calendars ?? [],
    inputs_rotation: told.inputs_rotation ?? [],
    pre_dispatch_condition: told.pre_dispatch_condition ?? null,
    concurrency_limit: told.concurrency_limit ?? 1,
  };
}
