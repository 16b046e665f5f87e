// Actions of a schedule that the user may perform.
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "../../api/session";
import { ActionDialog, type OneAction } from "../../parts/actions";
import { Button, buttonClass } from "../../parts/Button";
import { BackfillDialog } from "./BackfillDialog";
import type { WholeSchedule } from "./whole";

export function Actions({ schedule }: { schedule: WholeSchedule }) {
  const [open, setOpen] = useState<OneAction | "backfill" | null>(null);
  const operates = useMay("operate");
  const writes = useMay("write");
  if (schedule.status === "deleted") return null;
  const close = () => setOpen(null);
  const on = {
    scheduleId: schedule.schedule_id,
    name: schedule.name,
    paused: schedule.paused,
    zone: schedule.spec.timezone,
  };
  return (
    <>
      {operates ? (
        <>
          <Button kind="primary" onClick={() => setOpen("trigger")}>
            Trigger
          </Button>
          {schedule.status === "active" ? <Button onClick={() => setOpen("pause")}>Pause</Button> : null}
          {schedule.status === "paused" || schedule.status === "broken" ? (
            <Button onClick={() => setOpen("resume")}>Resume</Button>
          ) : null}
          <Button onClick={() => setOpen("backfill")}>Backfill</Button>
        </>
      ) : null}
      {writes ? (
        <>
          <Link
            to="/schedules/$scheduleId/edit"
            params={{ scheduleId: schedule.schedule_id }}
            className={buttonClass({})}
          >
            Edit
          </Link>
          <Button kind="danger" onClick={() => setOpen("delete")}>
            Delete
          </Button>
        </>
      ) : null}
      {open === "backfill" ? <BackfillDialog schedule={schedule} onClose={close} /> : null}
      {open !== null && open !== "backfill" ? <ActionDialog action={open} on={on} onClose={close} /> : null}
    </>
  );
}
