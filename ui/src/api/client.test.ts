import { expect, test } from "vitest";
import { ask, Refused } from "./client";

test.each(["", ".", "..", "a/b", "../runs"])("%j is no name in a path, and nobody is asked", async (workflow_id) => {
  const asked = ask("post", "/api/workflows/{workflow_id}/runs", { path: { workflow_id }, body: {} });
  await expect(asked).rejects.toSatisfy(
    (wrong) => wrong instanceof Refused && wrong.message.includes("is not a valid id"),
  );
});
