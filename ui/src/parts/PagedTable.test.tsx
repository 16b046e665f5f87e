import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { Refused } from "../api/client";
import { PagedTable } from "./PagedTable";

const pages = (names: string[][]) => names.map((each) => ({ names: each }));
const drawn = (data: { pages: { names: string[] }[] } | undefined, error: Error | null = null) =>
  renderToStaticMarkup(
    <PagedTable
      of={{ data, error, refetch: () => 0, hasNextPage: false, isFetchingNextPage: false, fetchNextPage: () => 0 }}
      rowsOf={(several) => several.flatMap((page) => page.names)}
      heads={["Name", false, { text: "Count", number: true }, { text: "Actions", hidden: true }, ""]}
      empty={<p>none yet</p>}
    >
      {(name) => <tr key={name}>{name}</tr>}
    </PagedTable>,
  );

test.each([
  ["nothing has come", drawn(undefined), ["Loading"], ["<table", "none yet"]],
  ["there is nothing", drawn({ pages: pages([[]]) }), ["none yet"], ["<table", "Loading"]],
  ["rows of all pages", drawn({ pages: pages([["a"], ["b"]]) }), ["<tr>a</tr><tr>b</tr>"], ["none yet"]],
  [
    "heads",
    drawn({ pages: pages([["a"]]) }),
    ['class="number">Count', 'visually-hidden">Actions', "<td></td></tr>"],
    [],
  ],
  ["nothing but a failure", drawn(undefined, new Error("away")), ["away", "Retry"], ["none yet"]],
])("%s", (_what, shown, has, hasNot) => {
  for (const each of has) expect(shown).toContain(each);
  for (const each of hasNot) expect(shown).not.toContain(each);
});

test("rows that were there stay when they are asked for again and refused", () => {
  const refused = new Refused(403, "forbidden", "not any more");
  const shown = drawn({ pages: pages([["a"]]) }, refused);
  expect(shown).toContain("<tr>a</tr>");
  expect(shown).toContain('role="alert"');
});
