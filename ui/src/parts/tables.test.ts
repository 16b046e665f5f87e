import { expect, it } from "vitest";
import { label } from "./tables";

it("gives each cell the head of its column, and every part the role that it had", () => {
  document.body.innerHTML = `<table>
    <thead><tr><th scope="col"><span class="visually-hidden">Chosen</span></th><th scope="col">Name</th><th scope="col"> Next </th></tr></thead>
    <tbody>
      <tr><td></td><th scope="row">nightly</th><td>soon</td></tr>
      <tr><td colspan="3"></td></tr>
    </tbody>
  </table>`;
  const table = document.querySelector("table")!;
  label(table);
  const told = (name: string) =>
    [...table.querySelectorAll("tbody td, tbody th")].map((each) => each.getAttribute(name));
  expect(told("data-label")).toEqual(["", "Name", "Next", null]);
  expect(told("role")).toEqual(["cell", "rowheader", "cell", "cell"]);
  expect([...table.querySelectorAll("thead th")].map((each) => each.getAttribute("role"))).toContain("columnheader");
});
