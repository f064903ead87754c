// What has become of an event, here and in the named inboxes that have a copy of it.

import { call, get, nextPage, withQuery } from "../api.js";
import { statusBadge } from "../controls.js";
import { el } from "../dom.js";
import { many, time } from "../moments.js";
import { each } from "../pool.js";

// So many events may have come in within its millisecond: 500 are a batch.
const MOST_PAGES = 5;

export function historyOf(event) {
  return el("div", { class: "stack" },
    el("dl", { class: "facts" },
      el("dt", {}, "Id"), el("dd", { class: "mono" }, event.id),
      el("dt", {}, "Received"), el("dd", {}, time(event.created_at)),
      el("dt", {}, "Deliveries"), el("dd", {}, String(event.deliveries))),
    el("section", { class: "stack-tight", "aria-label": "History" }, el("h4", {}, "History"),
      el("ol", { class: "timeline" }, steps(event).map(([words, at]) => el("li", {}, el("span", {}, words), at ? time(at) : null)))));
}

function steps(event) {
  const handedOut = event.deliveries > 0 && [`Handed out ${many(event.deliveries, "time")}`, null];
  const now = {
    undelivered: ["Waits for a poll", null],
    leased: ["Leased until", event.lease_expires_at],
    delivered: event.delivered_at ? ["Delivered", event.delivered_at] : ["Not handed out: the inbox default was off", null],
    dead: ["Dead: its leases ran out or failed too often", null],
  }[event.status];
  return [["Received", event.created_at], handedOut, now].filter(Boolean);
}

// Found by its time in each inbox that was there when it came, and takes its type: asking for a copy by id is an error where there is none.
export async function copiesOf(event, signal) {
  const inboxes = (await get("/inboxes", signal)).filter((inbox) => inbox.created_at <= event.created_at);
  const found = await each(inboxes, (inbox) => copyIn(inbox.name, event, signal));
  const copies = inboxes.map((inbox, place) => [inbox.name, found[place]]).filter(([, copy]) => copy);
  return copies.length > 0 && el("section", { class: "stack-tight", "aria-label": "Copies" },
    el("h4", {}, "Copies in named inboxes"),
    el("ul", { class: "stack-tight" }, copies.map(([name, copy]) =>
      el("li", { class: "line apart" }, el("span", {}, name),
        el("span", { class: "line" }, el("span", { class: "faint small" }, many(copy.deliveries, "delivery", "deliveries")), statusBadge(copy.status))))));
}

async function copyIn(inbox, event, signal) {
  let path = withQuery("/events", {
    inbox, event_type: event.event_type, since: event.timestamp, until: event.timestamp + 1, limit: 100,
  });
  for (let page = 0; page < MOST_PAGES && path; page += 1) {
    const { text, headers } = await call(path, { signal });
    const copy = JSON.parse(text).find((each) => each.id === event.id);
    if (copy) return copy;
    path = nextPage(headers);
  }
  return null;
}
