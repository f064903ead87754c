// The inboxes: what each takes, and what waits in it.

import { call, send } from "../api.js";
import { latest, pause, repeat } from "../async.js";
import { busy, button, closeButton, field, form, input, submit, viewHead } from "../controls.js";
import { confirm, open } from "../dialogs.js";
import { el, fill } from "../dom.js";
import { member, parse, pretty } from "../exact_json.js";
import { count, span, time, timeOr } from "../format.js";
import { DEFAULT, allInboxes, figures, isOff, marked } from "../inbox_stats.js";
import { alertSlot, attempt, say, showProblem } from "../messages.js";
import { session } from "../session.js";
import { table } from "../tables.js";
import { shownType } from "./event_types.js";

const REFRESH_MS = 10_000;
const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;
const PATTERN = /^[A-Za-z0-9._:/*-]{1,128}$/;
const SWITCHED = {
  on: ["From now on the inbox default gets every event. Events that were sent while it was off stay as they are."],
  off: ["From now on events only go to named inboxes that take them. Polls of default get no new events.",
    "Every event can still be looked up under Events, and replayed."],
};
// Very many copies take longer than one call, which then asks to be repeated.
const DELETE_TRIES = 20;
const DELETE_PAUSE_MS = 1000;

const COLUMNS = [
  { label: "Inbox", kind: "lead" }, { label: "Event types" }, { label: "Waiting", kind: "number" },
  { label: "Oldest waiting", kind: "nowrap" }, { label: "Created", kind: "nowrap" }, { label: "What to do", kind: "actions" },
];

export function openInboxes(root, { signal }) {
  const turn = latest(signal);
  const slot = alertSlot();
  const rows = table("Inboxes", COLUMNS);
  const stats = figures("24h");
  const reads = session.may("events:read", "inbox:read");
  let names = new Set();
  root.append(
    viewHead("Inboxes", "While it is on, the inbox default gets every event. A named inbox has its own copy of the events that it takes, so that each consumer can have one, and polls it at GET /inbox/NAME."),
    slot, rows.box, session.may("tenant:manage") ? creation((name) => names.has(name), follow, signal) : managersOnly());
  rows.show([], "Loading …");

  function follow() {
    const until = turn();
    repeat(() => refresh(until), REFRESH_MS, until);
  }

  async function refresh(until) {
    try {
      const inboxes = await allInboxes(until);
      names = new Set(inboxes.map((inbox) => inbox.name));
      const show = () => rows.show(inboxes.map(row));
      show();
      if (reads) await stats.refresh([...names], until, show);
      fill(slot);
    } catch (problem) {
      if (!until.aborted) showProblem(slot, problem);
      throw problem;
    }
  }

  function row(inbox) {
    const { name, event_types: types, created_at: created } = inbox;
    const takes = types ? el("div", { class: "chips" }, types.map((each) => el("span", { class: "chip" }, each))) : "everything";
    const known = stats.of(name);
    const age = known?.oldest_undelivered_age_seconds ?? null;
    return rows.row(name, [
      marked(inbox, name), isOff(inbox) ? "nothing" : takes, known ? count(known.undelivered) : "–", age === null ? "–" : span(age),
      timeOr(name === DEFAULT ? null : created, "always there", "day"),
      [reads && button("Peek", () => openPeek(name), "small"), session.may("tenant:manage") && change(inbox)],
    ]);
  }

  function change(inbox) {
    if (inbox.name !== DEFAULT) return button("Delete", () => remove(inbox.name), "small danger");
    return isOff(inbox) ? button("Turn on", () => turnDefault("on"), "small") : button("Turn off", () => turnDefault("off"), "small");
  }

  async function turnDefault(onOrOff) {
    const save = () => send("PUT", `/inboxes/${DEFAULT}`, { enabled: onOrOff === "on" }, signal);
    if (!(await confirm(`Turn default ${onOrOff}?`, SWITCHED[onOrOff], `Turn ${onOrOff}`, save, { harmless: true }))) return;
    say(`The inbox default is ${onOrOff}.`);
    follow();
  }

  async function remove(name) {
    const words = [`The inbox ${name} goes with all its copies of events. Consumers that poll it will be refused. This cannot be undone.`,
      "The events themselves stay in the inbox default."];
    if (!(await confirm(`Delete ${name}?`, words, "Delete inbox", () => deleteWhole(name)))) return;
    say(`The inbox ${name} is deleted.`);
    follow();
  }

  async function deleteWhole(name) {
    for (let tries = 1; ; tries += 1) {
      try {
        return await send("DELETE", `/inboxes/${name}`, undefined, signal);
      } catch (problem) {
        if (problem.status !== 503 || tries === DELETE_TRIES) throw problem;
        await pause(DELETE_PAUSE_MS, signal);
      }
    }
  }

  follow();
}

function creation(isThere, made, signal) {
  const slot = alertSlot();
  const name = input({ class: "code", placeholder: "crm" });
  const types = el("textarea", { class: "input code", rows: 3, spellcheck: "false", placeholder: "order.*, invoice.paid" });
  const nameField = field("Name", name, "1 to 63 of a–z, 0–9 and -, such as the name of the consumer.");
  const typesField = field("Event types", types, "One per line, or with commas or spaces between. * stands for any characters. Empty means everything.");
  const make = submit("Create inbox");

  const entry = form(() => {
    const patterns = types.value.split(/[\s,]+/).filter(Boolean);
    const wrong = patterns.find((each) => !PATTERN.test(each));
    nameField.fault(NAME.test(name.value.trim()) ? "" : "Has to be 1 to 63 of a–z, 0–9 and -, the first no hyphen.");
    typesField.fault(wrong ? `${wrong} is no pattern: letters, digits and . _ : / - * only.` : patterns.length > 50 ? "At most 50." : "");
    if (entry.querySelector("[aria-invalid]")) return entry.querySelector("[aria-invalid]").focus();
    const wanted = name.value.trim();
    const save = () => send("PUT", `/inboxes/${wanted}`, patterns.length ? { event_types: patterns } : {}, signal);
    return busy(make, async () => {
      if (!(await (isThere(wanted) ? confirmChange(wanted, patterns, save) : attempt(slot, save)))) return;
      say(`The inbox ${wanted} gets what is sent from now on.`);
      name.value = types.value = "";
      made();
    });
  }, el("div", { class: "form-row" }, nameField, typesField), slot, el("div", {}, make));
  return el("section", { class: "card stack", "aria-labelledby": "create-inbox" },
    el("h3", { id: "create-inbox" }, "Create an inbox"), entry);
}

function confirmChange(name, patterns, save) {
  const words = [`There is an inbox ${name} already. From now on it takes ${patterns.join(", ") || "everything"}, and nothing else.`,
    "What is in it stays."];
  return confirm(`Change ${name}?`, words, "Change inbox", save, { harmless: true });
}

function managersOnly() {
  return el("p", { class: "notice" }, "Creating and deleting inboxes needs a key with the scope ", el("code", {}, "tenant:manage"), ".");
}

// What waits in an inbox, the oldest first. Nobody is kept from getting it.

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
      el("ol", { class: "waiting" }, events.map((event, place) => peekRow(event, exact[place]))),
      more && el("p", { class: "faint small" }, `The oldest ${events.length} are shown.`));
  });
}

function peekRow(event, payload) {
  return el("li", {},
    el("div", { class: "line apart" },
      el("strong", {}, shownType(event.event_type)),
      el("span", { class: "faint small" }, time(event.created_at, "short"))),
    el("pre", { tabindex: 0, role: "group", "aria-label": "Payload" }, payload.length > LONGEST ? `${payload.slice(0, LONGEST)}…` : payload));
}
