// How much comes in and goes out, and what waits.

import { get } from "../api.js";
import { latest, repeat } from "../async.js";
import { choice, viewHead } from "../controls.js";
import { el, fill, icon } from "../dom.js";
import { bytes, count, span, time } from "../format.js";
import { DEFAULT, WINDOWS, allInboxes, figures, isOff, marked, statsOf } from "../inbox_stats.js";
import { alertSlot, showProblem } from "../messages.js";
import { address, note } from "../router.js";
import { session } from "../session.js";
import { table } from "../tables.js";
import { shownType } from "./event_types.js";
import { plotCard } from "./overview_chart.js";

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

// The four figures at the top.

export function tiles() {
  const waiting = tile("Undelivered now");
  const oldest = tile("Oldest waiting");
  const received = tile("Received");
  const delivered = tile("Delivered");
  const element = el("dl", { class: "tiles" }, [waiting, oldest, received, delivered].map((each) => each.element));

  function show({ undelivered, oldest_undelivered_at: since, oldest_undelivered_age_seconds: age, totals, window }) {
    const within = `in ${new Map(WINDOWS).get(window)}`;
    waiting.show(count(undelivered), "in the inbox default");
    oldest.show(since ? span(age) : "–", since ? ["since ", time(since, "short")] : "nothing waits there");
    received.show(count(totals.received), `${within}, ${bytes(totals.bytes)}`);
    delivered.show(count(totals.delivered), [within, totals.dead > 0 && dead(totals.dead)]);
  }
  return { element, show };
}

function dead(amount) {
  return [", ", el("a", { href: address("events", { status: "dead" }) }, `${count(amount)} dead`)];
}

function tile(name) {
  const figure = el("dd", { class: "figure" }, "…");
  const aside = el("dd", { class: "aside" });
  return {
    element: el("div", { class: "card tile" }, el("dt", {}, name), figure, aside),
    show(amount, ...words) {
      if (figure.textContent !== amount) figure.textContent = amount;
      fill(aside, words.flat(2));
    },
  };
}

// What came in, by type and by inbox.

const MOST_TYPES = 50;

export function byType() {
  const types = table("By event type", [
    { label: "Type" },
    { label: "Received", kind: "number" }, { label: "Delivered", kind: "number" }, { label: "Leased", kind: "number" },
    { label: "Dead", kind: "number" }, { label: "Replayed", kind: "number" }, { label: "Size", kind: "number nowrap" },
  ], { cards: false, captionShown: true });

  function show({ event_types: all }) {
    types.show(all.slice(0, MOST_TYPES).map((each) => types.row(`type ${each.event_type}`, [
      typeCell(each.event_type),
      ...[each.received, each.delivered, each.leased, each.dead, each.replayed].map(count),
      bytes(each.bytes),
    ])), "Nothing has happened in this time.");
  }
  return { element: types.box, show };
}

function typeCell(type) {
  if (type === "*") return el("span", { class: "faint" }, "all further types");
  return type === null ? shownType(type) : el("a", { href: address("events", { type }) }, shownType(type));
}

export function byInbox() {
  const inboxes = table("By inbox", [
    { label: "Inbox" },
    { label: "Undelivered", kind: "number" }, { label: "Oldest waiting", kind: "number nowrap" },
    { label: "Received", kind: "number" }, { label: "Delivered", kind: "number" }, { label: "Dead", kind: "number" },
  ], { cards: false, captionShown: true });

  // Each with its stats, or null where they are not known.
  function show(all) {
    inboxes.show(all.map(([inbox, stats]) => inboxes.row(inbox.name, [
      marked(inbox, el("a", { href: address("events", { inbox: inbox.name === DEFAULT ? "" : inbox.name }) }, inbox.name)), ...cells(stats),
    ])));
  }
  return { element: inboxes.box, show };
}

function cells(stats) {
  if (stats === null) return Array(5).fill("–");
  const { undelivered, oldest_undelivered_age_seconds: age, totals } = stats;
  return [count(undelivered), age === null ? "–" : span(age), count(totals.received), count(totals.delivered), count(totals.dead)];
}

// What a newcomer sees in place of figures: what this is for, and where to begin.

const STEPS = [
  ["system", "Systems send events", "A shop, a form, a webhook: whatever happens is sent with POST /events, and is on disk once it is answered."],
  ["inboxes", "They wait in your inbox", "In order, each exactly as it was sent, until somebody asks for them. Nothing here takes them away."],
  ["consumer", "Consumers poll them", "Zapier, Make, n8n or a script of yours asks GET /inbox, and each event is handed out once."],
];

export function welcome() {
  return el("section", { class: "card welcome", "aria-labelledby": "welcome" },
    el("div", {}, el("h3", { id: "welcome" }, "Nothing has come in yet. This is how it works"),
      el("p", { class: "faint" }, "Three steps, and you can try all of them from here.")),
    el("ol", { class: "journey" }, STEPS.map(([picture, title, words]) =>
      el("li", {}, el("span", { class: "badge-icon" }, icon(picture)), el("h4", {}, title), el("p", {}, words)))),
    el("div", { class: "line" },
      session.may("events:write") && el("a", { class: "button primary", href: address("send") }, "Send a first event"),
      el("a", { class: "button", href: address("connect") }, "Connect a system")));
}
