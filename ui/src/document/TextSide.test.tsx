import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { useState } from "react";
import { afterEach, beforeAll, expect, test } from "vitest";
import type { Doc } from "./document";
import { loadYaml } from "./text";
import { TextSide } from "./TextSide";

beforeAll(loadYaml);
afterEach(cleanup);

function Around({ begin }: { begin: Doc }) {
  const [document, setDocument] = useState(begin);
  const [unread, setUnread] = useState(false);
  return (
    <>
      <TextSide document={document} onDocument={setDocument} onUnread={setUnread} label="text" />
      <button onClick={() => setDocument({ name: "from the form" })}>form</button>
      <output>{unread ? "unread" : JSON.stringify(document)}</output>
    </>
  );
}

async function shown() {
  render(<Around begin={{ name: "a" }} />);
  const text = await screen.findByLabelText<HTMLTextAreaElement>("text");
  await screen.findByText(/Comments and ordering/);
  return { text, type: (value: string) => fireEvent.change(text, { target: { value } }) };
}

const said = () => screen.getByRole("status").textContent;

test("comments stay while the user types and after blur, until the form changes the document", async () => {
  const { text, type } = await shown();
  type("# mine\nname: b\n");
  fireEvent.blur(text);
  expect([text.value, said()]).toEqual(["# mine\nname: b\n", '{"name":"b"}']);
  fireEvent.click(screen.getByText("form"));
  expect(text.value).toBe("name: from the form\n");
});

test("invalid text is not applied and is reported until it is restored", async () => {
  const { text, type } = await shown();
  type("name: [");
  expect([text.value, said()]).toEqual(["name: [", "unread"]);
  expect(screen.getByText<HTMLButtonElement>("JSON").disabled).toBe(true);
  fireEvent.click(screen.getByText("Restore last valid text"));
  expect([text.value, said()]).toEqual(["name: a\n", '{"name":"a"}']);
});
