// One event with all that is known of it, and what can be done with it.

import { call, send, withQuery } from "../api.js";
import { copyButton } from "../clipboard.js";
import { button, busyButton, statusBadge } from "../controls.js";
import { sendLine } from "../curl.js";
import { confirm } from "../dialogs.js";
import { el, fill } from "../dom.js";
import { openDrawer } from "../drawers.js";
import { compact, member, parse } from "../exact_json.js";
import { keepFocus } from "../focus.js";
import { latest } from "../latest.js";
import { alertSlot, attempt, say, showProblem } from "../messages.js";
import { session } from "../session.js";
import { repeat } from "../ticking.js";
import { copiesOf, historyOf } from "./event_history.js";
import { payloadSection } from "./event_payload.js";
import { shownType } from "./event_type.js";

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
