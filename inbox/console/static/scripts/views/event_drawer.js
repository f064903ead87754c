// One event with all that is known of it, and what can be done with it.

import { call, get, nextPage, send, withQuery } from "../api.js";
import { each, latest, repeat } from "../async.js";
import { copyButton } from "../clipboard.js";
import { busyButton, button, statusBadge } from "../controls.js";
import { sendLine } from "../curl.js";
import { confirm, openDrawer } from "../dialogs.js";
import { el, fill, keepFocus } from "../dom.js";
import { compact, member, parse } from "../exact_json.js";
import { many, time } from "../format.js";
import { alertSlot, attempt, say, showProblem } from "../messages.js";
import { session } from "../session.js";
import { shownType } from "./event_types.js";
import { payloadSection } from "./payload.js";

const REFRESH_MS = 2000;

export function openEvent(id, inbox, { changed, leave }) {
  const closing = new AbortController();
  const turn = latest(closing.signal);
  const lookSlot = alertSlot();
  const actSlot = alertSlot();
  const facts = el("div", { class: "stack" });
  const payload = el("div", {});
  const copies = el("div", { class: "slot" });
  const path = `/events/${encodeURIComponent(id)}`;
  const { head, foot, opened } = openDrawer("Event", "Event", [lookSlot, actSlot, facts, payload, copies], {
    onclose: () => closing.abort(), leave,
  });
  let event, exact;
  let shown = "";

  // It keeps the focus when there is nothing to replay, so that it is not disabled then.
  const replay = busyButton("Replay", async () => {
    if (replay.ariaDisabled === "true") return;
    if (!(await attempt(actSlot, () => send("POST", withQuery(`${path}/replay`, { inbox }), undefined, closing.signal)))) return;
    replay.ariaDisabled = "true";
    changed();
    say("Undelivered again: the next poll gets it.");
    follow();
  }, "primary", { title: "Makes a delivered or dead event undelivered again" });
  const curl = copyButton(() => sendLine(location.origin, event.event_type, compact(exact)), {
    label: "Copy as curl", classes: "button", copied: "Copied: a line that sends it anew, with your key in $INBOX_API_KEY.",
  });
  const erase = button("Erase", async () => {
    const words = ["It is removed from every inbox, with its payload. This cannot be undone."];
    if (!(await confirm("Erase it for good?", words, "Erase event", eraseIt))) return;
    leave();
    await opened;
    changed();
    say("Erased.");
  }, "danger push");

  async function eraseIt() {
    // A look meanwhile would find nothing.
    turn();
    try {
      await send("DELETE", path, undefined, closing.signal);
    } catch (problem) {
      follow();
      throw problem;
    }
  }

  async function load(until) {
    const { text } = await call(withQuery(path, { inbox }), { signal: until });
    if (text === shown) return;
    event = JSON.parse(text);
    exact = member(parse(text), "payload");
    fill(head, el("h3", {}, shownType(event.event_type)),
      el("div", { class: "line" }, statusBadge(event.status), inbox && el("span", { class: "faint small" }, `in the inbox ${inbox}`)));
    fill(facts, historyOf(event));
    if (!payload.childNodes.length) fill(payload, payloadSection(exact));
    replay.ariaDisabled = String(!["delivered", "dead"].includes(event.status));
    if (!foot.childNodes.length) fill(foot, session.may("inbox:read") && replay, curl, session.may("tenant:manage") && erase);
    fill(copies, await copiesOf(event, until));
    // Not before: the copies may have to be asked for again.
    shown = text;
  }

  async function look(until) {
    try {
      await load(until);
      fill(lookSlot);
    } catch (problem) {
      if (until.aborted) return;
      showProblem(lookSlot, problem);
      if (problem.status !== 404) throw problem;
      turn();
      fill(foot);
      keepFocus();
    }
  }

  // It may be polled, leased or erased elsewhere while one looks at it.
  function follow() {
    const until = turn();
    repeat(() => look(until), REFRESH_MS, until);
  }

  follow();
  return opened;
}

// What has become of an event, here and in the named inboxes that have a copy of it.

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
