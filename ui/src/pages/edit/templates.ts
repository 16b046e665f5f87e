// Example schedules to start from.
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
    title: "HTTP request",
    about: "Sends an HTTP request. The example calls the health endpoint of this server.",
    make: (zone, service) => ({
      name: "Morning health check",
      spec: { cron_expressions: [MORNING], timezone: zone },
      action: { kind: "http", method: "GET", url: `${service}healthz` },
    }),
  },
  {
    id: "prompt",
    title: "Prompt an agent",
    about: "Sends a prompt to an agent and waits for the reply.",
    make: (zone) => ({
      name: "Morning brief",
      spec: { cron_expressions: [MORNING], timezone: zone },
      action: { kind: "prompt", prompt: "Summarise the events since yesterday." },
      assignee_type: "agent",
      assignee_id: "",
    }),
  },
  {
    id: "workflow",
    title: "Workflow",
    about: "Starts a stored workflow.",
    make: (zone) => ({
      name: "Nightly workflow",
      spec: { cron_expressions: ["0 2 * * *"], timezone: zone },
      action: { kind: "workflow", workflow_id: "" },
    }),
  },
  {
    id: "pull",
    title: "Queue task",
    about: "Adds a task to a queue for your workers.",
    make: (zone) => ({
      name: "Hourly task",
      spec: { cron_expressions: ["0 * * * *"], timezone: zone },
      action: { kind: "pull", queue: "default", workflow_type: "report" },
    }),
  },
  {
    id: "celery",
    title: "Celery task",
    about: "Publishes a task to a broker named in the settings.",
    make: (zone) => ({
      name: "Celery task",
      spec: { cron_expressions: ["*/15 * * * *"], timezone: zone },
      action: { kind: "celery", task: "" },
    }),
  },
  {
    id: "command",
    title: "Command",
    about: "Runs a command defined in the settings.",
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
