import { expect, test } from "vitest";
import { NOTHING_READ, readPiece } from "./stream";

test("an event that comes in pieces is read once it is whole", () => {
  const first = readPiece(NOTHING_READ, "id: 7-1\nevent: run_started\nda");
  expect(first.events).toEqual([]);
  const second = readPiece(first.unread, 'ta: {"a":1}\n\n');
  expect(second.events).toEqual([{ id: "7-1", event: "run_started", data: '{"a":1}' }]);
  expect(second.unread).toEqual({ text: "", lastId: "7-1" });
});

test("an id without data is a place to come back to, and no event", () => {
  const read = readPiece(NOTHING_READ, "retry: 2000\nid: 9-0\n\n: still here\n\n");
  expect(read.events).toEqual([]);
  expect(read.unread.lastId).toBe("9-0");
});

test("lines of data are joined, and carriage returns are line ends", () => {
  expect(readPiece(NOTHING_READ, "data: a\r\ndata: b\r\n\r\n").events[0]?.data).toBe("a\nb");
});
