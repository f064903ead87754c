// What came in, by type and by inbox.

import { el } from "../dom.js";
import { DEFAULT, marked } from "../inboxes.js";
import { bytes, count, span } from "../moments.js";
import { address } from "../router.js";
import { table } from "../tables.js";
import { shownType } from "./event_type.js";

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
