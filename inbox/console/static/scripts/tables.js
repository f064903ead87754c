// Tables that keep their meaning when they are shown as cards on a phone.

import { button } from "./controls.js";
import { el, keepFocus } from "./dom.js";
import { attempt } from "./messages.js";

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

// Brings rows up to date in place: what has not changed is not touched, so that focus and selections stay where they are.

// Every row has a `data-key` of its own. Those in `rows` take the place of those that are there.
export function refill(body, rows) {
  const focused = body.contains(document.activeElement);
  const wanted = new Map(rows.map((row) => [row.dataset.key, row]));
  const there = new Map();
  for (const row of [...body.children]) {
    if (wanted.has(row.dataset.key)) there.set(row.dataset.key, row);
    else row.remove();
  }
  let place = body.firstElementChild;
  for (const [key, row] of wanted) {
    const old = there.get(key);
    if (old) update(old, row);
    if (old && old === place) place = place.nextElementSibling;
    else body.insertBefore(old ?? row, place);
  }
  if (focused) keepFocus();
}

function update(old, row) {
  [...row.children].forEach((cell, place) => {
    if (!old.children[place].isEqualNode(cell)) old.children[place].replaceWith(cell);
  });
}

// What a table is filled with, or a way to try again.

// `look(until)` fills the rows; what came in its way is shown in the slot. Whose turn it is says `turn`, of latest.js.
export async function load(rows, slot, turn, look) {
  const until = turn();
  if ((await attempt(slot, () => look(until))) || until.aborted) return;
  rows.show([], button("Try again", () => load(rows, slot, turn, look)));
}
