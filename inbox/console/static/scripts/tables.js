// Tables that keep their meaning when they are shown as cards on a phone.

import { el } from "./dom.js";
import { refill } from "./refilling.js";

// `show(rows)` brings it up to date. `columns` are {label, kind}: `number` stands right, `lead` needs no label on a card, `actions` has buttons.
export function table(caption, columns, { cards = true, captionShown = false, classes = "" } = {}) {
  const body = el("tbody", { role: "rowgroup" });
  const head = el("tr", { role: "row" }, columns.map(({ label, kind }) =>
    el("th", { scope: "col", role: "columnheader", class: kind }, kind === "actions" ? el("span", { class: "unseen" }, label) : label)));
  const element = el("table", { class: `list ${cards ? "cards" : ""} ${classes}`, role: "table" },
    el("caption", { class: captionShown ? null : "unseen" }, caption),
    el("thead", { role: "rowgroup" }, head), body);
  const box = el("div", cards ? { class: "table-box" } : { class: "table-box", tabindex: 0, role: "group", "aria-label": `${caption}, scrolls` }, element);
  return {
    box,
    show: (rows, ...otherwise) => refill(body, rows.length ? rows : [none(columns, otherwise)]),
    row: (key, cells, attributes) => row(columns, key, cells, attributes),
  };
}

function row(columns, key, cells, attributes = {}) {
  return el("tr", { role: "row", "data-key": key, ...attributes }, cells.map((cell, place) => {
    const { label, kind = "" } = columns[place];
    const shared = { class: cell === "" ? `${kind} vacant` : kind, "data-label": label };
    const content = kind === "actions" ? el("div", {}, cell) : cell;
    return place === 0
      ? el("th", { scope: "row", role: "rowheader", ...shared }, content)
      : el("td", { role: "cell", ...shared }, content);
  }));
}

// For a row that is a way to something, wherever it is clicked; not for whoever marks text in it to copy it.
export function opening(open) {
  return { "data-opens": "", onclick: ({ target }) => target.closest("button") || !getSelection().isCollapsed || open() };
}

function none(columns, words) {
  return el("tr", { role: "row", class: "none", "data-key": "" }, el("td", { role: "cell", class: "empty", colspan: columns.length }, words));
}
