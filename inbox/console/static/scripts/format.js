// Formats timestamps, durations and numbers.

import { el } from "./dom.js";

const FORMATS = {
  full: new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" }),
  short: new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" }),
  day: new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" }),
  hour: new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" }),
  utcDay: new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" }),
};

export function formatTime(iso, format) {
  return FORMATS[format].format(new Date(iso));
}

export function timestamp(iso, format = "full") {
  return el("time", { datetime: iso, title: iso }, formatTime(iso, format));
}

export function timestampOr(iso, fallback, format) {
  return iso ? timestamp(iso, format) : el("span", { class: "faint" }, fallback);
}

export const formatCount = new Intl.NumberFormat("en-GB").format;

export function pluralize(number, one, more = `${one}s`) {
  return `${formatCount(number)} ${number === 1 ? one : more}`;
}

const UNITS = [["day", 86_400], ["h", 3600], ["min", 60], ["s", 1]];

// Formats a duration in its two largest units, such as "3 h 12 min".
export function formatDuration(seconds) {
  const parts = [];
  let rest = Math.max(0, Math.round(seconds));
  for (const [unit, size] of UNITS) {
    const amount = Math.floor(rest / size);
    rest -= amount * size;
    if (amount || (unit === "s" && !parts.length)) parts.push(unit === "day" ? pluralize(amount, "day") : `${amount} ${unit}`);
    else if (parts.length) break;
  }
  return parts.slice(0, 2).join(" ");
}

export function formatBytes(amount) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let power = 0;
  while (amount >= 1000 && power < units.length - 1) {
    amount /= 1000;
    power += 1;
  }
  return `${power && amount < 100 ? amount.toFixed(1) : Math.round(amount)} ${units[power]}`;
}
