// Events as rows. New ones are marked for a moment.

import { statusBadge } from "../controls.js";
import { el } from "../dom.js";
import { count, time } from "../moments.js";
import { opening, table } from "../tables.js";
import { shownType } from "./event_type.js";

const COLUMNS = [
  { label: "Time", kind: "at nowrap" }, { label: "Type", kind: "type" }, { label: "Status", kind: "status" },
  { label: "Deliveries", kind: "times number" }, { label: "Id", kind: "id" },
];

export function eventTable(open) {
  const events = table("Events", COLUMNS, { classes: "events" });
  let seen = null;

  function row(event) {
    const opens = (label, classes) =>
      el("button", { type: "button", class: `link-button ${classes}`, onclick: () => open(event.id) }, label);
    return events.row(event.id, [
      time(event.created_at, "short"), opens(shownType(event.event_type), ""), statusBadge(event.status), count(event.deliveries), opens(event.id, "mono small"),
    ], { class: seen && !seen.has(event.id) ? "fresh" : null, ...opening(() => open(event.id)) });
  }

  function show(all, loaded, ...otherwise) {
    events.show(all.map(row), ...otherwise);
    seen = loaded ? new Set(all.map((event) => event.id)) : null;
  }
  return { box: events.box, show };
}
