// How much comes in and goes out, and what waits.

import { get } from "../api.js";
import { choice } from "../controls.js";
import { el, fill } from "../dom.js";
import { DEFAULT, allInboxes, isOff } from "../inboxes.js";
import { latest } from "../latest.js";
import { alertSlot, showProblem } from "../messages.js";
import { note } from "../router.js";
import { figures, statsOf, WINDOWS } from "../stats.js";
import { repeat } from "../ticking.js";
import { viewHead } from "../view_head.js";
import { byInbox, byType } from "./overview_tables.js";
import { plotCard } from "./overview_plot.js";
import { tiles } from "./overview_tiles.js";
import { welcome } from "./welcome.js";

const REFRESH_MS = 4000;
// The other inboxes are asked one by one, so less often.
const ROUNDS_BETWEEN_INBOXES = 4;

export function openOverview(root, { query, signal }) {
  let window = windowOf(query);
  const turn = latest(signal);
  const slot = alertSlot();
  const greeting = el("div", { class: "slot" });
  const offNotice = el("div", { class: "slot" });
  const parts = { tiles: tiles(), plot: plotCard(signal), types: byType(), inboxes: byInbox() };
  const windows = choice("Window", WINDOWS, window, (chosen) => {
    note("overview", { window: chosen });
    look(chosen);
  });
  root.append(
    viewHead("Overview", "What came in, what was handed out, and what still waits.", windows),
    slot, greeting, offNotice, parts.tiles.element, parts.plot.element, parts.types.element, parts.inboxes.element);

  function look(chosen) {
    window = chosen;
    follow();
  }

  function follow() {
    const until = turn();
    const others = figures(window);
    let round = 0;
    repeat(async () => {
      await refresh(round % ROUNDS_BETWEEN_INBOXES === 0 ? others : null, until);
      round += 1;
    }, REFRESH_MS, until);
  }

  async function refresh(others, until) {
    try {
      const stats = await statsOf(DEFAULT, window, until);
      for (const part of [parts.tiles, parts.plot, parts.types]) part.show(stats);
      await greet(stats, until);
      if (others) await refreshInboxes(stats, others, until);
      fill(slot);
    } catch (problem) {
      if (!until.aborted) showProblem(slot, problem);
      throw problem;
    }
  }

  async function refreshInboxes(stats, others, until) {
    const [byDefault, ...named] = await allInboxes(until);
    fill(offNotice, isOff(byDefault) && defaultIsOff());
    const show = () => parts.inboxes.show([[byDefault, stats], ...named.map((inbox) => [inbox, others.of(inbox.name)])]);
    show();
    await others.refresh(named.map((inbox) => inbox.name), until, show);
  }

  async function greet(stats, until) {
    const quiet = stats.undelivered === 0 && stats.totals.received === 0;
    const isNew = quiet && (await get("/events?limit=1", until)).length === 0;
    if (isNew && !greeting.childNodes.length) greeting.append(welcome());
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

function defaultIsOff() {
  return el("p", { class: "notice" },
    "The inbox default is off, so events only go to named inboxes. The figures below are those of default; the table By inbox has those of each inbox.");
}

function windowOf({ window }) {
  return WINDOWS.some(([value]) => value === window) ? window : WINDOWS[0][0];
}
