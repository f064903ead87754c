// How much comes in and goes out, and what waits.

import { get } from "../api.js";
import { choice } from "../controls.js";
import { el, fill } from "../dom.js";
import { alertSlot, showProblem } from "../messages.js";
import { address, note } from "../router.js";
import { statsOf, statsOfAll } from "../stats.js";
import { repeat } from "../ticking.js";
import { viewHead } from "../view_head.js";
import { byInbox, byType } from "./overview_tables.js";
import { plotCard } from "./overview_plot.js";
import { tiles } from "./overview_tiles.js";
import { welcome } from "./welcome.js";

const REFRESH_MS = 4000;
// The other inboxes are asked one by one, so less often.
const ROUNDS_BETWEEN_INBOXES = 4;
const WINDOWS = [["24h", "24 hours"], ["7d", "7 days"], ["30d", "30 days"]];

export function openOverview(root, { query, signal }) {
  let window = windowOf(query);
  let turn = new AbortController();
  const slot = alertSlot();
  const greeting = el("div", { class: "slot" });
  const parts = { tiles: tiles(), plot: plotCard(signal), types: byType(), inboxes: byInbox() };
  const windows = choice("Window", WINDOWS, window, (chosen) => {
    note("overview", { window: chosen });
    look(chosen);
  });
  root.append(
    viewHead("Overview", "What came in, what was handed out, and what still waits.", windows),
    slot, greeting, parts.tiles.element, parts.plot.element, parts.types.element, parts.inboxes.element);

  function look(chosen) {
    window = chosen;
    follow();
  }

  // A new window begins anew, and lets go of what was asked for the old one.
  function follow() {
    turn.abort();
    turn = new AbortController();
    const both = AbortSignal.any([signal, turn.signal]);
    let round = 0;
    repeat(() => refresh(round++, both), REFRESH_MS, both);
  }

  async function refresh(round, until) {
    try {
      const stats = await statsOf("default", window, until);
      for (const part of [parts.tiles, parts.plot, parts.types]) part.show(stats);
      await greet(stats, until);
      if (round % ROUNDS_BETWEEN_INBOXES === 0) await refreshInboxes(stats, until);
      fill(slot);
    } catch (problem) {
      if (!until.aborted) showProblem(slot, problem);
      throw problem;
    }
  }

  async function refreshInboxes(stats, until) {
    const names = (await get("/inboxes", until)).map((inbox) => inbox.name);
    const others = await statsOfAll(names, window, until);
    parts.inboxes.show([stats, ...others.filter((each) => each !== null)]);
  }

  async function greet(stats, until) {
    const quiet = stats.undelivered === 0 && stats.totals.received === 0;
    const isNew = quiet && (await get("/events?limit=1", until)).length === 0;
    if (isNew && !greeting.childNodes.length) greeting.append(welcome(address));
    if (!isNew) fill(greeting);
  }

  follow();
  return {
    update: (wanted) => {
      windows.choose(windowOf(wanted));
      look(windowOf(wanted));
    },
  };
}

function windowOf({ window }) {
  return WINDOWS.some(([value]) => value === window) ? window : WINDOWS[0][0];
}
