// Times, spans and amounts as people read them.

import { el } from "./dom.js";

const FULL = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const SHORT = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });
const HOUR = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
// Days are counted in UTC, and would get another name elsewhere.
const COUNTED_DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const COUNT = new Intl.NumberFormat("en-GB");

const FORMS = { full: FULL, short: SHORT, day: DAY };

export function time(iso, form = "full") {
  return el("time", { datetime: iso, title: iso }, FORMS[form].format(new Date(iso)));
}

export function timeOr(iso, otherwise, form) {
  return iso ? time(iso, form) : el("span", { class: "faint" }, otherwise);
}

export function hourOf(iso) {
  return HOUR.format(new Date(iso));
}

export function dayOf(iso) {
  return COUNTED_DAY.format(new Date(iso));
}

export function count(number) {
  return COUNT.format(number);
}

export function many(number, one, more = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : more}`;
}

const SPANS = [["day", 86_400], ["h", 3600], ["min", 60], ["s", 1]];

// The two largest units of it: 3 h 12 min.
export function span(seconds) {
  const parts = [];
  let rest = Math.max(0, Math.round(seconds));
  for (const [unit, size] of SPANS) {
    const amount = Math.floor(rest / size);
    rest -= amount * size;
    if (amount || (unit === "s" && !parts.length)) parts.push(unit === "day" ? many(amount, "day") : `${amount} ${unit}`);
    else if (parts.length) break;
  }
  return parts.slice(0, 2).join(" ");
}

export function bytes(amount) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let power = 0;
  while (amount >= 1000 && power < units.length - 1) {
    amount /= 1000;
    power += 1;
  }
  return `${power && amount < 100 ? amount.toFixed(1) : Math.round(amount)} ${units[power]}`;
}
