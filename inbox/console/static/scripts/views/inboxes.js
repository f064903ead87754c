// Inboxes: list, peek, create, delete, and disable or enable the default inbox.

import { request, sendJson, session } from "../api.js";
import { repeater, sleep } from "../async.js";
import { button, closeButton, eventTypeLabel, field, form, formCard, input, viewHeader } from "../controls.js";
import { confirmAction, openDialog } from "../dialogs.js";
import { el, fill } from "../dom.js";
import { getMember, parseExact, pretty } from "../exact_json.js";
import { formatCount, formatDuration, timestamp, timestampOr } from "../format.js";
import { DEFAULT_INBOX, inboxLabel, isDisabled, listInboxes, statsCache } from "../inbox_stats.js";
import { alertSlot, runOrReport, showProblem, showToast } from "../messages.js";
import { table } from "../tables.js";

const REFRESH_MS = 10_000;
const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;
const PATTERN = /^[A-Za-z0-9._:/*-]{1,128}$/;
const MAX_PATTERNS = 50;
const CONSEQUENCES = {
  Enable: ["New events will go to the default inbox again. Events sent while it was disabled remain delivered and are not returned by polls."],
  Disable: ["New events will go to matching named inboxes only. Polls of the default inbox return no new events.",
    "You can still find all events under Events, and replay them."],
};
// Deleting an inbox with very many events takes several requests.
const MAX_DELETE_ATTEMPTS = 20;
const DELETE_PAUSE_MS = 1000;
const PEEK_LIMIT = 20;
const MAX_PEEK_CHARACTERS = 2000;

const COLUMNS = [
  { label: "Inbox", kind: "lead" }, { label: "Event types" }, { label: "Undelivered", kind: "number" },
  { label: "Oldest undelivered", kind: "nowrap" }, { label: "Created", kind: "nowrap" }, { label: "Actions", kind: "actions" },
];

export function openInboxes(root, { signal }) {
  const slot = alertSlot();
  const tableView = table("Inboxes", COLUMNS);
  const refresh = repeater(load, REFRESH_MS, signal, (problem) => showProblem(slot, problem));
  const stats = statsCache("24h");
  const canRead = session.hasScope("events:read", "inbox:read");
  let names = new Set();
  const readOnlyNotice = el("p", { class: "notice" },
    "To create or delete inboxes, sign in with a key that has the scope ", el("code", {}, "tenant:manage"), ".");
  root.append(
    viewHeader("Inboxes", "The default inbox receives every event. Create a named inbox per consumer to give each its own copy of the events, and poll it at GET /inbox/NAME."),
    slot, tableView.box, session.hasScope("tenant:manage") ? inboxForm((name) => names.has(name), refresh.start, signal) : readOnlyNotice);
  tableView.show([], "Loading…");

  async function load(runSignal) {
    const inboxes = await listInboxes(runSignal);
    names = new Set(inboxes.map((inbox) => inbox.name));
    const show = () => tableView.show(inboxes.map(row));
    show();
    if (canRead) await stats.refresh([...names], runSignal, show);
    fill(slot);
  }

  function row(inbox) {
    const { name, event_types: types, created_at: created } = inbox;
    const patterns = types ? el("div", { class: "chips" }, types.map((each) => el("span", { class: "chip" }, each))) : "all";
    const known = stats.get(name);
    const age = known?.oldest_undelivered_age_seconds ?? null;
    return tableView.row(name, [
      inboxLabel(inbox, name), isDisabled(inbox) ? "none" : patterns,
      known ? formatCount(known.undelivered) : "–", age === null ? "–" : formatDuration(age),
      timestampOr(name === DEFAULT_INBOX ? null : created, "built-in", "day"),
      [canRead && button("Peek", () => openPeek(name), "small"), session.hasScope("tenant:manage") && changeButton(inbox)],
    ]);
  }

  function changeButton(inbox) {
    if (inbox.name !== DEFAULT_INBOX) return button("Delete", () => confirmDelete(inbox.name), "small danger");
    const verb = isDisabled(inbox) ? "Enable" : "Disable";
    return button(verb, () => confirmSwitch(verb), "small");
  }

  async function confirmSwitch(verb) {
    const save = () => sendJson("PUT", `/inboxes/${DEFAULT_INBOX}`, { enabled: verb === "Enable" }, signal);
    if (!(await confirmAction(`${verb} the default inbox?`, CONSEQUENCES[verb], `${verb} inbox`, save, { danger: false }))) return;
    showToast(`The default inbox is ${verb.toLowerCase()}d.`);
    refresh.start();
  }

  async function confirmDelete(name) {
    const text = [`This deletes the inbox ${name} and its copies of events. Consumers that poll it will get errors. You can’t undo this.`,
      "The original events stay in the default inbox."];
    if (!(await confirmAction(`Delete ${name}?`, text, "Delete inbox", () => deleteInbox(name)))) return;
    showToast(`Inbox ${name} deleted.`);
    refresh.start();
  }

  async function deleteInbox(name) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await sendJson("DELETE", `/inboxes/${name}`, undefined, signal);
      } catch (problem) {
        if (problem.status !== 503 || attempt === MAX_DELETE_ATTEMPTS) throw problem;
        await sleep(DELETE_PAUSE_MS, signal);
      }
    }
  }

  refresh.start();
}

function inboxForm(exists, onsave, signal) {
  const name = input({ class: "code", placeholder: "crm" });
  const types = el("textarea", { class: "input code", rows: 3, spellcheck: "false", placeholder: "order.*, invoice.paid" });
  const fields = el("div", { class: "form-row" },
    field("Name", name, {
      hint: "Lowercase letters, digits and hyphens, up to 63 characters. For example, the consumer’s name.",
      check: (text) => (NAME.test(text.trim()) ? "" : "Use 1 to 63 lowercase letters, digits and hyphens. The first character can’t be a hyphen."),
    }),
    field("Event types", types, {
      hint: "Separate with commas, spaces or new lines. * matches any characters. Leave empty for all events.", check: patternsError,
    }));

  async function create() {
    const wanted = name.value.trim();
    const patterns = splitPatterns(types.value);
    const save = () => sendJson("PUT", `/inboxes/${wanted}`, patterns.length ? { event_types: patterns } : {}, signal);
    if (!exists(wanted)) await save();
    else if (!(await confirmChange(wanted, patterns, save))) return;
    showToast(`Inbox ${wanted} saved. It receives matching events from now on.`);
    name.value = types.value = "";
    onsave();
  }
  return formCard("Create an inbox", form("Create inbox", create, fields));
}

function splitPatterns(text) {
  return text.split(/[\s,]+/).filter(Boolean);
}

function patternsError(text) {
  const patterns = splitPatterns(text);
  const invalid = patterns.find((each) => !PATTERN.test(each));
  if (invalid) return `${invalid} isn’t a valid pattern. Use up to 128 letters, digits and . _ : / - *`;
  return patterns.length > MAX_PATTERNS ? `Use up to ${MAX_PATTERNS} patterns.` : "";
}

function confirmChange(name, patterns, save) {
  const text = [`The inbox ${name} already exists. From now on it will receive ${patterns.length ? `only ${patterns.join(", ")}` : "all events"}.`,
    "Events already in it stay."];
  return confirmAction(`Change ${name}?`, text, "Change inbox", save, { danger: false });
}

function openPeek(inbox) {
  const slot = alertSlot();
  const list = el("div", {}, el("p", { class: "faint" }, "Loading…"));
  const title = `Undelivered in ${inbox}`;
  const { signal } = openDialog(title, "wide", (close) => el("div", { class: "inside" },
    el("div", { class: "line apart" }, el("h3", {}, title), closeButton(() => close())),
    el("p", { class: "faint" }, "In the order polls return them. Peeking doesn’t deliver events."),
    slot, list));

  runOrReport(slot, async () => {
    const { text, headers } = await request(`/inbox/${inbox}?mode=peek&limit=${PEEK_LIMIT}`, { signal });
    const events = JSON.parse(text);
    const payloads = parseExact(text).children.map(([, event]) => pretty(getMember(event, "payload")));
    const hasMore = headers.get("Inbox-More") === "true" || events.length === PEEK_LIMIT;
    fill(list,
      events.length === 0 && el("p", {}, "No undelivered events."),
      el("ol", { class: "peeked" }, events.map((event, index) => peekRow(event, payloads[index]))),
      hasMore && el("p", { class: "faint small" }, `Showing the oldest ${events.length} events.`));
  });
}

function peekRow(event, payload) {
  return el("li", {},
    el("div", { class: "line apart" },
      el("strong", {}, eventTypeLabel(event.event_type)),
      el("span", { class: "faint small" }, timestamp(event.created_at, "short"))),
    el("pre", { tabindex: 0, role: "group", "aria-label": "Payload" },
      payload.length > MAX_PEEK_CHARACTERS ? `${payload.slice(0, MAX_PEEK_CHARACTERS)}…` : payload));
}
