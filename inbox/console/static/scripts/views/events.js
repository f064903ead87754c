// Every event, newest first, as it comes in.

import { call, get, nextPage, withQuery } from "../api.js";
import { button, busy, check } from "../controls.js";
import { el, fill } from "../dom.js";
import { addressedDrawer } from "../drawers.js";
import { alertSlot, attempt, showProblem } from "../messages.js";
import { count } from "../moments.js";
import { address, go, note } from "../router.js";
import { session } from "../session.js";
import { repeat } from "../ticking.js";
import { viewHead } from "../view_head.js";
import { openEvent } from "./event_drawer.js";
import { eventFilters } from "./event_filters.js";
import { EventList, MOST_SHOWN, PAGE } from "./event_list.js";
import { eventTable } from "./event_table.js";

const REFRESH_MS = 2000;
// With payloads of a megabyte a second's pause is added for each.
const MS_PER_CHARACTER = 0.001;

export function openEvents(root, { query, signal }) {
  const list = new EventList();
  const slot = alertSlot();
  const filters = eventFilters(query, changeFilters, signal);
  const follow = check("Follow", { checked: true });
  const rows = eventTable((id) => go("events", { ...filters.address(), event: id }));
  const more = button("Load more", loadMore, "", { hidden: true });
  const enough = el("p", { hidden: true }, `Only the newest ${count(MOST_SHOWN)} are shown: narrow the filters to see others.`);
  let turn = new AbortController();

  root.append(
    viewHead("Events", "Every event of the last weeks, whatever has become of it. Looking changes nothing.", follow),
    filters.element, slot, rows.box, el("div", { class: "more" }, more, enough));

  function changeFilters() {
    note("events", filters.address());
    reload();
  }

  function reload() {
    list.clear();
    more.hidden = enough.hidden = true;
    rows.show([], false, "Loading …");
    begin();
  }

  // Changed filters begin anew, and let go of what was asked for the old ones.
  function begin() {
    turn.abort();
    turn = new AbortController();
    const both = AbortSignal.any([signal, turn.signal]);
    repeat(() => (follow.box.checked || !list.loaded ? refresh(both) : null), REFRESH_MS, both);
  }

  async function page(path, until) {
    const { text, headers } = await call(path, { signal: until });
    return { events: JSON.parse(text).map(({ payload: _, ...event }) => event), next: nextPage(headers), size: text.length };
  }

  async function refresh(until = turn.signal) {
    try {
      const first = await page(withQuery("/events", { ...filters.parameters(), limit: PAGE }), until);
      list.refresh(first);
      show();
      fill(slot);
      return first.size * MS_PER_CHARACTER;
    } catch (problem) {
      if (!until.aborted) showProblem(slot, problem);
      if (!until.aborted && !list.loaded) rows.show([], false, "Nothing could be loaded. It is tried again.");
      throw problem;
    }
  }

  function show() {
    rows.show(list.events, true, filters.any() ? "No event matches these filters." : emptyWords());
    const full = list.events.length >= MOST_SHOWN;
    more.hidden = !list.next || full;
    enough.hidden = !full;
  }

  function loadMore() {
    const until = turn.signal;
    return busy(more, () => attempt(slot, async () => {
      list.extend(await page(list.next, until));
      show();
    }));
  }

  const drawer = addressedDrawer(
    (id, closed) => openEvent(id, filters.parameters().inbox, { changed: () => refresh().catch(() => {}), closed }),
    () => !signal.aborted && note("events", filters.address()));

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
