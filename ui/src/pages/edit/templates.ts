// What a new schedule begins with: something that works as it is, to be changed.
import type { Doc } from "../../document/document";

export interface Template {
  id: string;
  title: string;
  about: string;
  make: (zone: string, service: string) => Doc;
}

const MORNING = "0 9 * * 1-5";

export const TEMPLATES: readonly Template[] = [
  {
    id: "http",
    title: "HTTP call",
    about: "asks an address; as it stands, this service whether it is well",
    make: (zone, service) => ({
      name: "Every morning",
      spec: { cron_expressions: [MORNING], timezone: zone },
      action: { kind: "http", method: "GET", url: `${service}healthz` },
    }),
  },
  {
    id: "prompt",
    title: "Prompt an agent",
    about: "tells an agent something, and waits for its answer",
    make: (zone) => ({
      name: "Morning brief",
      spec: { cron_expressions: [MORNING], timezone: zone },
      action: { kind: "prompt", prompt: "Summarise what happened since yesterday." },
      assignee_type: "agent",
      assignee_id: "",
    }),
  },
  {
    id: "workflow",
    title: "Workflow",
    about: "starts a workflow that is stored here",
    make: (zone) => ({
      name: "Nightly workflow",
      spec: { cron_expressions: ["0 2 * * *"], timezone: zone },
      action: { kind: "workflow", workflow_id: "" },
    }),
  },
  {
    id: "pull",
    title: "Work for a queue",
    about: "puts a run into a queue from which your workers take",
    make: (zone) => ({
      name: "Hourly work",
      spec: { cron_expressions: ["0 * * * *"], timezone: zone },
      action: { kind: "pull", queue: "default", workflow_type: "report" },
    }),
  },
  {
    id: "celery",
    title: "Celery task",
    about: "publishes a task to a broker that the settings name",
    make: (zone) => ({
      name: "Celery task",
      spec: { cron_expressions: ["*/15 * * * *"], timezone: zone },
      action: { kind: "celery", task: "" },
    }),
  },
  {
    id: "command",
    title: "Command",
    about: "runs a command that the settings name",
    make: (zone) => ({
      name: "Nightly command",
      spec: { cron_expressions: ["0 3 * * *"], timezone: zone },
      action: { kind: "command", command: "" },
    }),
  },
];

export function templateNamed(id: unknown): Template {
  return TEMPLATES.find((each) => each.id === id) ?? TEMPLATES[0]!;
}
