// Every event, newest first, as it comes in.

import { get } from "../api.js";
import { button, check } from "../controls.js";
import { el, fill } from "../dom.js";
import { addressedDrawer } from "../drawers.js";
import { keepFocus } from "../focus.js";
import { latest } from "../latest.js";
import { alertSlot, attempt, showProblem } from "../messages.js";
import { count } from "../moments.js";
import { address, goOver, note } from "../router.js";
import { session } from "../session.js";
import { repeat } from "../ticking.js";
import { viewHead } from "../view_head.js";
import { openEvent } from "./event_drawer.js";
import { eventFilters } from "./event_filters.js";
import { MOST_SHOWN, newest, PAGE } from "./event_list.js";
import { eventTable } from "./event_table.js";

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
