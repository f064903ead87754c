// One event with all that is known of it, and what can be done with it.

import { call, send, withQuery } from "../api.js";
import { copyButton } from "../clipboard.js";
import { button, busy, closeButton, statusBadge } from "../controls.js";
import { sendLine } from "../curl.js";
import { confirm, open } from "../dialogs.js";
import { el, fill, foreign } from "../dom.js";
import { compact, member, parse } from "../exact_json.js";
import { alertSlot, attempt, say, showProblem } from "../messages.js";
import { repeat } from "../ticking.js";
import { copiesOf, historyOf } from "./event_history.js";
import { payloadSection } from "./event_payload.js";

const REFRESH_MS = 2000;

export function openEvent(id, inbox, { changed, closed }) {
  const leave = new AbortController();
  const following = new AbortController();
  const slot = alertSlot();
  const head = el("div", {}, el("h3", {}, "Event"));
  const facts = el("div", { class: "stack" });
  const payload = el("div", {});
  const copies = el("div", { class: "slot" });
  const foot = el("div", { class: "drawer-foot" });
  const path = `/events/${encodeURIComponent(id)}`;

  const opened = open("Event", "drawer", (shut) => [
    el("div", { class: "drawer-head" }, head, closeButton(() => shut())),
    el("div", { class: "drawer-body", tabindex: 0, role: "group", "aria-label": "Details" }, slot, facts, payload, copies),
    foot,
  ], { onclose: () => (leave.abort(), following.abort(), closed()) });
  let shown = "";

  async function load() {
    const { text } = await call(withQuery(path, { inbox }), { signal: leave.signal });
    if (text === shown) return;
    shown = text;
    const event = JSON.parse(text);
    const exact = member(parse(text), "payload");
    fill(head,
      el("h3", {}, event.event_type === null ? el("span", { class: "faint" }, "(no type)") : foreign(event.event_type)),
      el("div", { class: "line" }, statusBadge(event.status), inbox && el("span", { class: "faint small" }, `in the inbox ${inbox}`)));
    fill(facts, historyOf(event));
    if (!payload.childNodes.length) fill(payload, payloadSection(exact));
    showFoot(event, exact);
    fill(copies, await copiesOf(event, leave.signal));
  }

  function showFoot(event, exact) {
    const replay = button("Replay", () => busy(replay, () => attempt(slot, async () => {
      await send("POST", withQuery(`${path}/replay`, { inbox }), undefined, leave.signal);
      changed();
      await load();
      say("Undelivered again: the next poll gets it.");
    })), "primary", {
      disabled: !["delivered", "dead"].includes(event.status),
      title: "Makes a delivered or dead event undelivered again",
    });
    const erase = button("Erase", async () => {
      const words = ["It is removed from every inbox, with its payload. This cannot be undone."];
      const erased = await confirm("Erase it for good?", words, "Erase event", () => {
        following.abort();
        return send("DELETE", path, undefined, leave.signal);
      });
      if (!erased) return;
      opened.dialog.close();
      changed();
      say("Erased.");
    }, "danger push");
    const curl = copyButton(() => sendLine(location.origin, event.event_type, compact(exact)), { label: "Copy as curl", classes: "button" });
    fill(foot, replay, curl, erase);
  }

  // It may be polled, leased or erased elsewhere while one looks at it.
  async function follow() {
    try {
      await load();
    } catch (problem) {
      if (following.signal.aborted) return;
      showProblem(slot, problem);
      if (problem.status !== 404) throw problem;
      following.abort();
      fill(foot);
    }
  }

  repeat(follow, REFRESH_MS, following.signal);
  return opened;
}
