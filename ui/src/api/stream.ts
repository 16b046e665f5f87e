// Parse a server-sent event stream in pieces (HTML standard, section 9.2). Pure functions.

export interface StreamEvent {
  id: string | null;
  event: string;
  data: string;
}

/** The received text that is not yet a complete event. */
export interface Unread {
  text: string;
  lastId: string | null;
}

export const NOTHING_READ: Unread = { text: "", lastId: null };

/** The events that a piece completes. An event without data only changes the last id. */
export function readPiece(unread: Unread, piece: string): { events: StreamEvent[]; unread: Unread } {
  const text = (unread.text + piece).replace(/\r\n?/g, "\n");
  const blocks = text.split("\n\n");
  const rest = blocks.pop() ?? "";
  let lastId = unread.lastId;
  const events: StreamEvent[] = [];
  for (const block of blocks) {
    const found: StreamEvent = { id: lastId, event: "message", data: "" };
    const data: string[] = [];
    for (const line of block.split("\n")) {
      const [name, value] = field(line);
      if (name === "id") lastId = found.id = value;
      else if (name === "event") found.event = value;
      else if (name === "data") data.push(value);
    }
    if (data.length > 0) events.push({ ...found, data: data.join("\n") });
  }
  return { events, unread: { text: rest, lastId } };
}

function field(line: string): [string, string] {
  const colon = line.indexOf(":");
  if (colon < 0) return [line, ""];
  return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
}
