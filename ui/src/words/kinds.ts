// The kinds of actions and assignees.
export const ACTION_KINDS = {
  http: "HTTP request",
  prompt: "Agent prompt",
  workflow: "Workflow",
  pull: "Queue task",
  celery: "Celery task",
  command: "Command",
  python: "Python task",
} as const;

export const ASSIGNEE_TYPES = { agent: "Agent", team: "Team" } as const;
