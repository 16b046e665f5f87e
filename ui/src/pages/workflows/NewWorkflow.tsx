// Dialog that creates a workflow; starts from an example with two steps.
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useWrite } from "../../api/hooks";
import { Dialog } from "../../parts/Dialog";
import { TextField } from "../../parts/Field";
import { WorkflowEditor } from "./WorkflowEditor";
import type { Doc } from "../../document/document";

const FIRST: Doc = {
  name: "New workflow",
  nodes: [
    { id: "fetch", action: { kind: "pull", queue: "default", workflow_type: "fetch" } },
    { id: "report", needs: ["fetch"], action: { kind: "pull", queue: "default", workflow_type: "report" } },
  ],
};

export function NewWorkflow({ onClose }: { onClose: () => void }) {
  const put = useWrite("put", "/api/workflows/{workflow_id}");
  const navigate = useNavigate();
  const [id, setId] = useState("");
  const [document, setDocument] = useState(FIRST);
  const [unread, setUnread] = useState(false);
  const run = () =>
    put.mutate(
      { path: { workflow_id: id }, body: document },
      { onSuccess: () => void navigate({ to: "/workflows/$workflowId", params: { workflowId: id } }) },
    );
  return (
    <Dialog
      title="Create workflow"
      wide
      onClose={onClose}
      failure={put.error}
      action={{ text: "Create", run, busy: put.isPending, disabled: id === "" || unread }}
    >
      <TextField
        label="ID"
        value={id}
        onChange={(event) => setId(event.target.value)}
        hint="Unique in the namespace. An existing ID gets a new version."
        required
      />
      <WorkflowEditor document={document} onDocument={setDocument} unread={unread} onUnread={setUnread} />
    </Dialog>
  );
}
