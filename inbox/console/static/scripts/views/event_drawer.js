// A drawer with the details of one event: payload as a tree or as JSON, history, copies and actions.

import { getJson, getNextPagePath, request, sendJson, session, withQuery } from "../api.js";
import { mapConcurrently, repeater } from "../async.js";
import { copyButton, sendCommand } from "../clipboard.js";
import { asyncButton, button, eventTypeLabel, statusBadge } from "../controls.js";
import { confirmAction, openDrawer } from "../dialogs.js";
import { el, fill, restoreFocus, userText } from "../dom.js";
import { compact, escapeInvisible, getMember, parseExact, pretty } from "../exact_json.js";
import { pluralize, timestamp } from "../format.js";
import { alertSlot, runOrReport, showProblem, showToast } from "../messages.js";

const REFRESH_MS = 2000;
// The events of a batch have the same timestamp, and a batch has up to 500.
const MAX_COPY_PAGES = 5;

export function openEvent(id, inbox, { onchange, leave }) {
  const loadSlot = alertSlot();
  const actionSlot = alertSlot();
  const facts = el("div", { class: "stack" });
  const payload = el("div", {});
  const copies = el("div", { class: "slot" });
  const path = `/events/${encodeURIComponent(id)}`;
  const { head, foot, opened } = openDrawer("Event", "Event", [loadSlot, actionSlot, facts, payload, copies], leave);
  const refresh = repeater(load, REFRESH_MS, opened.signal, showFailure);
  let event, exactPayload, shown;

  // Uses aria-disabled rather than disabled, so that the button keeps the focus after a replay.
  const replay = asyncButton("Replay", async () => {
    if (replay.ariaDisabled === "true") return;
    if (!(await runOrReport(actionSlot, () => sendJson("POST", withQuery(`${path}/replay`, { inbox }), undefined, opened.signal)))) return;
    replay.ariaDisabled = "true";
    onchange();
    showToast("Event replayed. The next poll delivers it again.");
    refresh.start();
  }, "primary", { title: "Makes a delivered or dead event undelivered again" });
  const curl = copyButton(() => sendCommand(event.event_type, compact(exactPayload)), {
    label: "Copy as curl", classes: "", message: "Copied a command that sends this event again. Set INBOX_API_KEY before you run it.",
  });
  const erase = button("Erase", async () => {
    const text = ["This permanently erases the event and its payload in all inboxes. You can’t undo this."];
    if (!(await confirmAction("Erase this event?", text, "Erase event", eraseEvent))) return;
    leave();
    await opened;
    onchange();
    showToast("Event erased.");
  }, "danger push");

  async function eraseEvent() {
    // Stops refreshing, which would report that the event no longer exists.
    refresh.stop();
    try {
      await sendJson("DELETE", path, undefined, opened.signal);
    } catch (problem) {
      refresh.start();
      throw problem;
    }
  }

  async function load(runSignal) {
    const { text } = await request(withQuery(path, { inbox }), { signal: runSignal });
    if (text === shown) return fill(loadSlot);
    event = JSON.parse(text);
    exactPayload = getMember(parseExact(text), "payload");
    fill(head, el("h3", {}, eventTypeLabel(event.event_type)),
      el("div", { class: "line" }, statusBadge(event.status), inbox && el("span", { class: "faint small" }, `in inbox ${inbox}`)));
    fill(facts, factsAndHistory(event));
    if (!payload.childNodes.length) fill(payload, payloadSection(exactPayload));
    replay.ariaDisabled = String(!["delivered", "dead"].includes(event.status));
    if (!foot.childNodes.length) fill(foot, session.hasScope("inbox:read") && replay, curl, session.hasScope("tenant:manage") && erase);
    fill(copies, await copiesSection(event, runSignal));
    // Set last, so that a failed request for the copies is repeated.
    shown = text;
    fill(loadSlot);
  }

  function showFailure(problem) {
    showProblem(loadSlot, problem);
    if (problem.status !== 404) return;
    refresh.stop();
    fill(foot);
    restoreFocus();
  }

  refresh.start();
  return opened;
}

function factsAndHistory(event) {
  return [
    el("dl", { class: "facts" },
      el("dt", {}, "ID"), el("dd", { class: "mono" }, event.id),
      el("dt", {}, "Received"), el("dd", {}, timestamp(event.created_at)),
      el("dt", {}, "Deliveries"), el("dd", {}, String(event.deliveries))),
    el("section", { class: "stack-tight", "aria-label": "History" }, el("h4", {}, "History"),
      el("ol", { class: "timeline" }, describeHistory(event).map(([text, at]) => el("li", {}, el("span", {}, text), at && timestamp(at))))),
  ];
}

function describeHistory(event) {
  const deliveries = event.deliveries > 0 && [`Delivered or leased ${pluralize(event.deliveries, "time")}`];
  const now = {
    undelivered: ["Undelivered"],
    leased: ["Leased until", event.lease_expires_at],
    delivered: event.delivered_at ? ["Delivered", event.delivered_at] : ["Not delivered here: the default inbox was disabled"],
    dead: ["Dead: too many leases expired or failed"],
  }[event.status];
  return [["Received", event.created_at], deliveries, now].filter(Boolean);
}

// Searches each inbox by the event's timestamp. Requests for copies by ID would fail with 404 for each inbox without one,
// and the browser logs failed requests.
async function copiesSection(event, signal) {
  const inboxes = (await getJson("/inboxes", signal)).filter((inbox) => inbox.created_at <= event.created_at);
  const found = await mapConcurrently(inboxes, (inbox) => findCopy(inbox.name, event, signal));
  const copies = inboxes.map((inbox, index) => [inbox.name, found[index]]).filter(([, copy]) => copy);
  return copies.length > 0 && el("section", { class: "stack-tight", "aria-label": "Copies" },
    el("h4", {}, "Copies in named inboxes"),
    el("ul", { class: "stack-tight" }, copies.map(([name, copy]) =>
      el("li", { class: "line apart" }, el("span", {}, name),
        el("span", { class: "line" }, el("span", { class: "faint small" }, pluralize(copy.deliveries, "delivery", "deliveries")), statusBadge(copy.status))))));
}

async function findCopy(inbox, event, signal) {
  let path = withQuery("/events", {
    inbox, event_type: event.event_type, since: event.timestamp, until: event.timestamp + 1, limit: 100,
  });
  for (let page = 0; page < MAX_COPY_PAGES && path; page += 1) {
    const { text, headers } = await request(path, { signal });
    const copy = JSON.parse(text).find((each) => each.id === event.id);
    if (copy) return copy;
    path = getNextPagePath(headers);
  }
  return null;
}

// Branches are rendered when they are opened, in pages, so that the drawer stays responsive with payloads of any size.
const PAGE_SIZE = 100;
const MAX_TEXT_LENGTH = 600;
const OPEN_LEVELS = 2;
const MAX_OPEN_MEMBERS = 25;

function payloadSection(payload) {
  const content = el("div", {});
  const modes = {
    Tree: () => el("div", { class: "payload" }, branchOrLeaf(null, payload, 0)),
    "Raw JSON": () => el("pre", { class: "code", tabindex: 0, role: "group", "aria-label": "Payload as JSON" }, pretty(payload)),
  };
  const buttons = Object.keys(modes).map((mode) => el("button", { type: "button", onclick: () => show(mode) }, mode));
  function show(mode) {
    for (const each of buttons) each.setAttribute("aria-pressed", String(each.textContent === mode));
    fill(content, modes[mode]());
  }
  show("Tree");
  return el("section", { class: "stack-tight", "aria-label": "Payload" },
    el("div", { class: "line apart" }, el("h4", {}, "Payload"), el("div", { class: "segments", role: "group", "aria-label": "Payload format" }, buttons)),
    content);
}

function branchOrLeaf(name, node, level) {
  return node.children?.length ? branch(name, node, level) : leaf(name, node);
}

function label(name) {
  return name === null ? [] : [userText(escapeInvisible(name), { class: "name" }), el("span", { class: "faint" }, ": ")];
}

function branch(name, { kind, children }, level) {
  const members = el("div", { class: "members" });
  const size = kind === "object" ? `{ ${pluralize(children.length, "member")} }` : `[ ${pluralize(children.length, "item")} ]`;
  const details = el("details", {}, el("summary", {}, ...label(name), el("span", { class: "faint" }, size)), members);
  const render = () => {
    if (details.open && !members.childNodes.length) addChildren(members, children, level, 0);
  };
  details.addEventListener("toggle", render);
  details.open = level < OPEN_LEVELS && (level === 0 || children.length <= MAX_OPEN_MEMBERS);
  render();
  return details;
}

function addChildren(members, children, level, start) {
  const end = start + PAGE_SIZE;
  const added = children.slice(start, end).map(([name, child]) => branchOrLeaf(name, child, level + 1));
  members.append(...added);
  if (start > 0) focus(added[0]);
  if (end >= children.length) return;
  const more = button(`Show more of ${pluralize(children.length, "member")}`, () => {
    more.remove();
    addChildren(members, children, level, end);
  }, "small");
  members.append(more);
}

// The button that had the focus was replaced, so the focus moves to the first new element.
function focus(element) {
  element.tabIndex = -1;
  element.focus({ preventScroll: true });
}

function leaf(name, node) {
  const text = escapeInvisible(compact(node));
  const isLong = text.length > MAX_TEXT_LENGTH;
  const value = userText(isLong ? `${text.slice(0, MAX_TEXT_LENGTH)}…` : text, { class: node.children ? "faint" : node.kind });
  const line = el("div", { class: "leaf" }, ...label(name), value);
  if (isLong) {
    const showAll = button(`Show all ${pluralize(text.length, "character")}`, () => {
      value.textContent = text;
      showAll.remove();
      focus(value);
    }, "small");
    line.append(" ", showAll);
  }
  return line;
}
