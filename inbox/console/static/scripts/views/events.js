// Every event, newest first, as it comes in.

import { call, get, nextPage, withQuery } from "../api.js";
import { latest, repeat } from "../async.js";
import { button, check, statusBadge, viewHead } from "../controls.js";
import { addressedDrawer } from "../dialogs.js";
import { el, fill, keepFocus } from "../dom.js";
import { count, time } from "../format.js";
import { alertSlot, attempt, showProblem } from "../messages.js";
import { address, goOver, note } from "../router.js";
import { session } from "../session.js";
import { opening, table } from "../tables.js";
import { openEvent } from "./event_drawer.js";
import { eventFilters } from "./event_filters.js";
import { shownType } from "./event_types.js";

const REFRESH_MS = 2000;
// With payloads of a megabyte a second's pause is added for each.
const MS_PER_CHARACTER = 0.001;

export function openEvents(root, { query, signal }) {
  const turn = latest(signal);
  const slot = alertSlot();
  const moreSlot = alertSlot();
  const filters = eventFilters(query, changeFilters, signal);
  const follow = check("Follow", { checked: true });
  const rows = eventTable((id) => goOver("events", { ...filters.address(), event: id }));
  const more = button("Load more", loadMore, "", { hidden: true });
  const enough = el("p", { hidden: true }, `Only the newest ${count(MOST_SHOWN)} are shown: narrow the filters to see others.`);
  let events, asked, shown;

  root.append(
    viewHead("Events", "Every event of the last weeks, whatever has become of it. Looking changes nothing.", follow),
    filters.element, slot, rows.box, moreSlot, el("div", { class: "more" }, more, enough));

  function changeFilters() {
    note("events", filters.address());
    reload();
  }

  function reload() {
    events = [];
    asked = PAGE;
    shown = 0;
    more.hidden = enough.hidden = true;
    fill(moreSlot);
    if (!filters.isRight()) {
      turn();
      rows.show([], false, "No event can have this type. Types are compared as a whole, without *.");
      return;
    }
    rows.show([], false, "Loading …");
    look();
  }

  function loadMore() {
    asked = shown + PAGE;
    look();
  }

  // Until it has worked once, and then as long as one follows.
  function look() {
    const until = turn();
    let due = true;
    repeat(async () => {
      if (!due && !follow.box.checked) return 0;
      const size = await refresh(until);
      due = false;
      return size * MS_PER_CHARACTER;
    }, REFRESH_MS, until);
  }

  // All that is shown is asked for at once: so it is what there is, however far back one looks.
  async function refresh(until) {
    try {
      const found = await newest(parameters(), asked, until);
      events = found.events;
      shown = asked;
      show(found.more);
      for (const each of [slot, moreSlot]) fill(each);
      return found.size;
    } catch (problem) {
      if (!until.aborted) showProblem(shown && asked > shown ? moreSlot : slot, problem);
      if (!until.aborted && !shown) rows.show([], false, "Nothing could be loaded. It is tried again.");
      throw problem;
    }
  }

  // Where one does not follow, what has come in meanwhile does not push out the oldest.
  function parameters() {
    const newer = follow.box.checked ? undefined : events[0];
    return newer ? { ...filters.parameters(), until: newer.timestamp + 1 } : filters.parameters();
  }

  function show(thereIsMore) {
    rows.show(events, true, thereIsMore ? "None of the newest matches: load more to look further back." : wordsForNone());
    more.hidden = !thereIsMore || shown >= MOST_SHOWN;
    if (more.hidden && document.activeElement === more) {
      more.blur();
      keepFocus();
    }
    enough.hidden = !thereIsMore || shown < MOST_SHOWN;
  }

  function wordsForNone() {
    return filters.any() ? "No event matches these filters." : emptyWords();
  }

  const drawer = addressedDrawer(
    (id, leave) => openEvent(id, filters.parameters().inbox, { changed: look, leave }),
    () => note("events", filters.address()), signal);

  reload();
  drawer(query.event);
  offerInboxes();
  async function offerInboxes() {
    await attempt(slot, async () => filters.offer(await get("/inboxes", signal)));
  }
  return {
    update: (wanted) => {
      if (filters.take(wanted)) reload();
      drawer(wanted.event);
    },
  };
}

function emptyWords() {
  return el("span", {}, "No events yet. ",
    session.may("events:write") ? [el("a", { href: address("send") }, "Send one"), ", or "] : [],
    el("a", { href: address("connect") }, "connect a system"), ": it appears here by itself.");
}

// The newest events, without their payloads.

export const PAGE = 25;
export const MOST_SHOWN = 500;

// `amount` of them, in one answer if it can be. Large payloads, and filters that match little, make answers short: no more
// are asked for than there are pages in the amount.
export async function newest(parameters, amount, signal) {
  const events = [];
  let path = withQuery("/events", { ...parameters, limit: amount });
  let size = 0;
  for (let answers = 0; path && events.length < amount && answers < amount / PAGE; answers += 1) {
    const { text, headers } = await call(path, { signal });
    events.push(...JSON.parse(text).map(({ payload: _, ...event }) => event));
    size += text.length;
    path = nextPage(headers);
  }
  return { events: events.slice(0, amount), more: path !== null || events.length > amount, size };
}

// Events as rows. New ones are marked for a moment.

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
