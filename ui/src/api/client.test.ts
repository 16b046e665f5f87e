import { expect, test } from "vitest";
import { ask, Refused } from "./client";

test.each(["", ".", "..", "a/b", "../runs"])(
  "%j is rejected as a path segment without a request",
  async (workflow_id) => {
    const asked = ask("post", "/api/workflows/{workflow_id}/runs", { path: { workflow_id }, body: {} });
    await expect(asked).rejects.toSatisfy(
      (wrong) => wrong instanceof Refused && wrong.message.includes("is not a valid id"),
    );
  },
);
