// What waits in an inbox, the oldest first. Nobody is kept from getting it.

import { call } from "../api.js";
import { closeButton } from "../controls.js";
import { open } from "../dialogs.js";
import { el, fill } from "../dom.js";
import { member, parse, pretty } from "../exact_json.js";
import { alertSlot, attempt } from "../messages.js";
import { time } from "../moments.js";
import { shownType } from "./event_type.js";

const SHOWN = 20;
const LONGEST = 2000;

export function openPeek(inbox) {
  const leave = new AbortController();
  const slot = alertSlot();
  const list = el("div", {}, el("p", { class: "faint" }, "Loading …"));
  open(`Waiting in ${inbox}`, "wide", (shut) => el("div", { class: "inside" },
    el("div", { class: "line apart" }, el("h3", {}, `Waiting in ${inbox}`), closeButton(() => shut())),
    el("p", { class: "faint" }, "The order in which polls get them. Looking takes nothing."),
    slot, list), { onclose: () => leave.abort() });

  attempt(slot, async () => {
    const { text, headers } = await call(`/inbox/${inbox}?mode=peek&limit=${SHOWN}`, { signal: leave.signal });
    const events = JSON.parse(text);
    const exact = parse(text).items.map((event) => pretty(member(event, "payload")));
    const more = headers.get("Inbox-More") === "true" || events.length === SHOWN;
    fill(list,
      events.length === 0 && el("p", {}, "Nothing waits. An event that is sent now would appear here until it is polled."),
      el("ol", { class: "waiting" }, events.map((event, place) => row(event, exact[place]))),
      more && el("p", { class: "faint small" }, `The oldest ${events.length} are shown.`));
  });
}

function row(event, payload) {
  return el("li", {},
    el("div", { class: "line apart" },
      el("strong", {}, shownType(event.event_type)),
      el("span", { class: "faint small" }, time(event.created_at, "short"))),
    el("pre", { tabindex: 0, role: "group", "aria-label": "Payload" }, payload.length > LONGEST ? `${payload.slice(0, LONGEST)}…` : payload));
}
