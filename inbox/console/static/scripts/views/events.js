// Live list of events, newest first, and its filters, which are kept in the URL.

import { getJson, getNextPagePath, request, session, withQuery } from "../api.js";
import { repeater } from "../async.js";
import { button, checkbox, eventTypeField, eventTypeLabel, field, input, select, statusBadge, viewHeader } from "../controls.js";
import { routedDrawer } from "../dialogs.js";
import { el, fill, restoreFocus } from "../dom.js";
import { formatCount, timestamp } from "../format.js";
import { alertSlot, runOrReport, showProblem } from "../messages.js";
import { hashFor, openOverlay, replaceHash } from "../router.js";
import { openOnClick, table } from "../tables.js";
import { openEvent } from "./event_drawer.js";

const REFRESH_MS = 2000;
// Adds a second to the interval per megabyte of payloads.
const MS_PER_CHARACTER = 0.001;
const PAGE_SIZE = 25;
const MAX_SHOWN = 500;

export function openEvents(root, { query, signal }) {
  const slot = alertSlot();
  const moreSlot = alertSlot();
  const filters = eventFilters(query, applyFilters, signal);
  const follow = checkbox("Live updates", { checked: true });
  const tableView = eventTable((id) => openOverlay("events", { ...filters.query(), event: id }));
  const more = button("Load more", loadMore, "", { hidden: true });
  const limitNote = el("p", { hidden: true }, `Showing the newest ${formatCount(MAX_SHOWN)} events. Narrow the filters to find older ones.`);
  const repeated = repeater(load, REFRESH_MS, signal, showFailure);
  let events, requested, shown, isStale;

  root.append(
    viewHeader("Events", "All stored events, delivered or not. Viewing events doesn’t change them.", follow),
    filters.element, slot, tableView.box, moreSlot, el("div", { class: "more" }, more, limitNote));

  function applyFilters() {
    replaceHash("events", filters.query());
    reload();
  }

  function reload() {
    events = [];
    requested = PAGE_SIZE;
    shown = 0;
    more.hidden = limitNote.hidden = true;
    fill(moreSlot);
    if (!filters.isValid()) {
      repeated.stop();
      tableView.show([], false, "Not a valid event type. The filter matches whole types and doesn’t support *.");
      return;
    }
    tableView.show([], false, "Loading…");
    refresh();
  }

  function loadMore() {
    requested = shown + PAGE_SIZE;
    refresh();
  }

  function refresh() {
    isStale = true;
    repeated.start();
  }

  // Requests all rows that are shown, so that older rows do not go stale. Without live updates, repeats only failed requests.
  async function load(runSignal) {
    if (!isStale && !follow.box.checked) return 0;
    const found = await loadNewest(parameters(), requested, runSignal);
    events = found.events;
    shown = requested;
    show(found.hasMore);
    for (const each of [slot, moreSlot]) fill(each);
    isStale = false;
    return found.characters * MS_PER_CHARACTER;
  }

  function showFailure(problem) {
    showProblem(shown && requested > shown ? moreSlot : slot, problem);
    if (!shown) tableView.show([], false, "Couldn’t load events. Retrying…");
  }

  // Without live updates, "Load more" must not add events that arrived meanwhile.
  function parameters() {
    const newest = follow.box.checked ? undefined : events[0];
    return newest ? { ...filters.parameters(), until: newest.timestamp + 1 } : filters.parameters();
  }

  function show(hasMore) {
    tableView.show(events, true, hasMore ? "No matches among the newest events. Load more to search older ones."
      : filters.hasAny() ? "No events match these filters." : noEvents());
    more.hidden = !hasMore || shown >= MAX_SHOWN;
    if (more.hidden && document.activeElement === more) {
      more.blur();
      restoreFocus();
    }
    limitNote.hidden = !hasMore || shown < MAX_SHOWN;
  }

  const showDrawer = routedDrawer(
    (id, leave) => openEvent(id, filters.parameters().inbox, { onchange: refresh, leave }),
    () => replaceHash("events", filters.query()), signal);

  reload();
  showDrawer(query.event);
  runOrReport(slot, async () => filters.addInboxes(await getJson("/inboxes", signal)));
  return {
    update: (updated) => {
      if (filters.apply(updated)) reload();
      showDrawer(updated.event);
    },
  };
}

function noEvents() {
  return el("span", {}, "No events yet. ",
    session.hasScope("events:write") ? [el("a", { href: hashFor("send") }, "Send an event"), " or "] : [],
    el("a", { href: hashFor("connect") }, "connect a system"), ". New events appear here automatically.");
}

// Returns {events, hasMore, characters}: up to `limit` events without their payloads, and the size of the responses. The API
// returns short pages if payloads are large or few events match, so the number of requests is limited.
async function loadNewest(parameters, limit, signal) {
  const events = [];
  let path = withQuery("/events", { ...parameters, limit });
  let characters = 0;
  for (let requests = 0; path && events.length < limit && requests < limit / PAGE_SIZE; requests += 1) {
    const { text, headers } = await request(path, { signal });
    events.push(...JSON.parse(text).map(({ payload: _, ...event }) => event));
    characters += text.length;
    path = getNextPagePath(headers);
  }
  return { events: events.slice(0, limit), hasMore: path !== null || events.length > limit, characters };
}

const COLUMNS = [
  { label: "Time", kind: "at nowrap" }, { label: "Type", kind: "type" }, { label: "Status", kind: "status" },
  { label: "Deliveries", kind: "times number" }, { label: "ID", kind: "id" },
];

// Returns a table of events that highlights new rows.
function eventTable(open) {
  const events = table("Events", COLUMNS, { classes: "events" });
  let seen = null;

  function row(event) {
    const opener = (label, classes) =>
      el("button", { type: "button", class: `link-button ${classes}`, onclick: () => open(event.id) }, label);
    return events.row(event.id, [
      timestamp(event.created_at, "short"), opener(eventTypeLabel(event.event_type), ""), statusBadge(event.status),
      formatCount(event.deliveries), opener(event.id, "mono small"),
    ], { class: seen && !seen.has(event.id) ? "fresh" : null, ...openOnClick(() => open(event.id)) });
  }

  function show(all, isLoaded, ...emptyText) {
    events.show(all.map(row), ...emptyText);
    seen = isLoaded ? new Set(all.map((event) => event.id)) : null;
  }
  return { box: events.box, show };
}

const STATUSES = ["undelivered", "leased", "delivered", "dead"];
const DEBOUNCE_MS = 300;
const PHONE = matchMedia("(max-width: 47.99rem)");

function eventFilters(initial, onchange, signal) {
  const controls = {
    status: select([["", "Any"], ...STATUSES.map((each) => [each, each])]),
    type: input({ placeholder: "order.created" }),
    since: input({ type: "datetime-local" }),
    until: input({ type: "datetime-local" }),
    inbox: select([["", "default"]]),
  };
  const { status, type, since, until, inbox } = controls;
  const typeField = eventTypeField(type);
  const times = [field("Since", since), field("Until", until)];
  for (const each of times) each.classList.add("wide");
  let timer;
  const cancelTimer = () => clearTimeout(timer);
  type.addEventListener("input", () => {
    cancelTimer();
    typeField.validate();
    timer = setTimeout(onchange, DEBOUNCE_MS);
  });
  signal.addEventListener("abort", cancelTimer);
  for (const control of [status, since, until, inbox]) control.addEventListener("change", onchange);

  function setValues(wanted) {
    addOption(inbox, wanted.inbox);
    for (const [name, control] of Object.entries(controls)) control.value = wanted[name] ?? "";
    if (!STATUSES.includes(status.value)) status.value = "";
    cancelTimer();
    typeField.validate();
  }
  setValues(initial);

  const query = () => Object.fromEntries(Object.entries(controls).map(([name, { value }]) => [name, value.trim()]));
  const hasAny = () => Object.entries(query()).some(([name, value]) => name !== "inbox" && value !== "");
  return {
    element: collapsible([field("Status", status), typeField, ...times, field("Inbox", inbox)], hasAny(), signal),
    query,
    hasAny,
    isValid: () => !typeField.validate(),
    // Applies the values of a URL. Returns true if they changed.
    apply: (wanted) => {
      const before = JSON.stringify(query());
      setValues(wanted);
      return JSON.stringify(query()) !== before;
    },
    parameters: () => {
      const { type: eventType, ...others } = query();
      return { ...others, event_type: eventType, since: utcTimestamp(since.value), until: utcTimestamp(until.value) };
    },
    addInboxes: (inboxes) => inboxes.forEach(({ name }) => addOption(inbox, name)),
  };
}

// Collapsed on phones, where the filters would fill the screen.
function collapsible(fields, isOpen, signal) {
  const details = el("details", { class: "card foldable" }, el("summary", {}, "Filters"), el("div", { class: "filters" }, fields));
  details.open = isOpen || !PHONE.matches;
  PHONE.addEventListener("change", () => (details.open = details.open || !PHONE.matches), { signal });
  return details;
}

function addOption(control, name) {
  if (name && ![...control.options].some((each) => each.value === name)) control.append(el("option", { value: name }, name));
}

function utcTimestamp(local) {
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
