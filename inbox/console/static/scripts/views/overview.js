// Overview: tiles, chart and tables with the tenant's statistics.

import { getJson, session } from "../api.js";
import { repeater } from "../async.js";
import { eventTypeLabel, segmentedControl, viewHeader } from "../controls.js";
import { el, fill, icon } from "../dom.js";
import { formatBytes, formatCount, formatDuration, timestamp } from "../format.js";
import { DEFAULT_INBOX, WINDOWS, getStats, inboxLabel, isDisabled, listInboxes, statsCache } from "../inbox_stats.js";
import { alertSlot, showProblem } from "../messages.js";
import { hashFor, replaceHash } from "../router.js";
import { table } from "../tables.js";
import { chartCard } from "./overview_chart.js";

const REFRESH_MS = 4000;
// Each named inbox needs its own request, so named inboxes are refreshed less often.
const ROUNDS_PER_INBOX_REFRESH = 4;
const MAX_TYPES = 50;

export function openOverview(root, { query, signal }) {
  let window, cache, round;
  const slot = alertSlot();
  const welcome = welcomeCard();
  const disabledNotice = el("p", { class: "notice", hidden: true },
    "The default inbox is disabled, so events go to named inboxes only. The figures below are for the default inbox. For named inboxes, see By inbox.");
  const parts = [tiles(), chartCard(signal), typeTable()];
  const inboxes = inboxTable();
  const windows = segmentedControl("Time range", WINDOWS, (selected) => {
    replaceHash("overview", { window: selected });
    select(selected);
  });
  const refresh = repeater(load, REFRESH_MS, signal, (problem) => showProblem(slot, problem));
  root.append(
    viewHeader("Overview", "Events received, delivered and undelivered.", windows),
    slot, welcome, disabledNotice, ...parts.map((part) => part.element), inboxes.element);

  function select(selected) {
    window = selected;
    cache = statsCache(window);
    round = 0;
    windows.select(window);
    refresh.start();
  }

  async function load(runSignal) {
    const stats = await getStats(DEFAULT_INBOX, window, runSignal);
    for (const part of parts) part.show(stats);
    const isQuiet = stats.undelivered === 0 && stats.totals.received === 0;
    welcome.hidden = !isQuiet || (await getJson("/events?limit=1", runSignal)).length > 0;
    if (round % ROUNDS_PER_INBOX_REFRESH === 0) await refreshInboxes(stats, runSignal);
    round += 1;
    fill(slot);
  }

  async function refreshInboxes(stats, runSignal) {
    const [defaultInbox, ...named] = await listInboxes(runSignal);
    disabledNotice.hidden = !isDisabled(defaultInbox);
    const show = () => inboxes.show([[defaultInbox, stats], ...named.map((inbox) => [inbox, cache.get(inbox.name)])]);
    show();
    await cache.refresh(named.map((inbox) => inbox.name), runSignal, show);
  }

  select(windowFrom(query));
  return { update: (updated) => select(windowFrom(updated)) };
}

function windowFrom({ window }) {
  return WINDOWS.some(([value]) => value === window) ? window : WINDOWS[0][0];
}

function tiles() {
  const undelivered = tile("Undelivered");
  const oldest = tile("Oldest undelivered");
  const received = tile("Received");
  const delivered = tile("Delivered");
  const element = el("dl", { class: "tiles" }, [undelivered, oldest, received, delivered].map((each) => each.element));

  function show({ undelivered: count, oldest_undelivered_at: since, oldest_undelivered_age_seconds: age, totals, window }) {
    const range = `in the last ${new Map(WINDOWS).get(window)}`;
    undelivered.show(formatCount(count), "now, in the default inbox");
    oldest.show(since ? formatDuration(age) : "–", since ? ["since ", timestamp(since, "short")] : "no undelivered events");
    received.show(formatCount(totals.received), `${range}, ${formatBytes(totals.bytes)}`);
    const deadLink = el("a", { href: hashFor("events", { status: "dead" }) }, `${formatCount(totals.dead)} dead`);
    delivered.show(formatCount(totals.delivered), range, totals.dead > 0 && [", ", deadLink]);
  }
  return { element, show };
}

function tile(name) {
  const figure = el("dd", { class: "figure" }, "…");
  const aside = el("dd", { class: "aside" });
  return {
    element: el("div", { class: "card tile" }, el("dt", {}, name), figure, aside),
    show(amount, ...details) {
      if (figure.textContent !== amount) figure.textContent = amount;
      fill(aside, details);
    },
  };
}

function typeTable() {
  const types = table("By event type", [
    { label: "Type" },
    { label: "Received", kind: "number" }, { label: "Delivered", kind: "number" }, { label: "Leased", kind: "number" },
    { label: "Dead", kind: "number" }, { label: "Replayed", kind: "number" }, { label: "Size", kind: "number nowrap" },
  ], { cards: false, captionShown: true });

  function show({ event_types: all }) {
    types.show(all.slice(0, MAX_TYPES).map((each) => types.row(`type ${each.event_type}`, [
      typeCell(each.event_type),
      ...[each.received, each.delivered, each.leased, each.dead, each.replayed].map(formatCount),
      formatBytes(each.bytes),
    ])), "No activity in this time range.");
  }
  return { element: types.box, show };
}

function typeCell(type) {
  if (type === "*") return el("span", { class: "faint" }, "all other types");
  return type === null ? eventTypeLabel(type) : el("a", { href: hashFor("events", { type }) }, eventTypeLabel(type));
}

function inboxTable() {
  const inboxes = table("By inbox", [
    { label: "Inbox" },
    { label: "Undelivered", kind: "number" }, { label: "Oldest undelivered", kind: "number nowrap" },
    { label: "Received", kind: "number" }, { label: "Delivered", kind: "number" }, { label: "Dead", kind: "number" },
  ], { cards: false, captionShown: true });

  // Takes pairs of an inbox and its statistics. The statistics are null while they load.
  function show(all) {
    inboxes.show(all.map(([inbox, stats]) => inboxes.row(inbox.name, [
      inboxLabel(inbox, el("a", { href: hashFor("events", { inbox: inbox.name === DEFAULT_INBOX ? "" : inbox.name }) }, inbox.name)),
      ...inboxFigures(stats),
    ])));
  }
  return { element: inboxes.box, show };
}

function inboxFigures(stats) {
  if (stats === null) return Array(5).fill("–");
  const { undelivered, oldest_undelivered_age_seconds: age, totals } = stats;
  return [
    formatCount(undelivered), age === null ? "–" : formatDuration(age),
    ...[totals.received, totals.delivered, totals.dead].map(formatCount),
  ];
}

const STEPS = [
  ["system", "Send events", "Your systems send events to POST /events. Once the service responds, the event is stored."],
  ["inboxes", "Your inbox keeps them", "Events stay undelivered, in order and unchanged, until a consumer polls them."],
  ["consumer", "Poll them", "Zapier, Make, n8n or your own program polls GET /inbox and receives each event once."],
];

function welcomeCard() {
  return el("section", { class: "card welcome", "aria-labelledby": "welcome", hidden: true },
    el("div", {}, el("h3", { id: "welcome" }, "No events yet. Here’s how it works"),
      el("p", { class: "faint" }, "You can try all three steps from this console.")),
    el("ol", { class: "steps" }, STEPS.map(([picture, title, text]) =>
      el("li", {}, el("span", { class: "badge-icon" }, icon(picture)), el("h4", {}, title), el("p", {}, text)))),
    el("div", { class: "line" },
      session.hasScope("events:write") && el("a", { class: "button primary", href: hashFor("send") }, "Send your first event"),
      el("a", { class: "button", href: hashFor("connect") }, "Connect a system")));
}
