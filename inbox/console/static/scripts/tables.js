// Tables, which become lists of cards on a phone.

import { button } from "./controls.js";
import { el, restoreFocus } from "./dom.js";
import { runOrReport } from "./messages.js";

// Returns {box, show, row}: `show(rows)` updates the table, `row` creates a row. `columns` are {label, kind}: `number` aligns
// right, `lead` has no label on a card, `actions` holds buttons. Roles are explicit because CSS changes `display`, which removes implicit ones.
export function table(caption, columns, { cards = true, captionShown = false, classes = "" } = {}) {
  const body = el("tbody", { role: "rowgroup" });
  const head = el("tr", { role: "row" }, columns.map(({ label, kind }) =>
    el("th", { scope: "col", role: "columnheader", class: kind }, kind === "actions" ? el("span", { class: "visually-hidden" }, label) : label)));
  const element = el("table", { class: `list ${cards ? "cards" : ""} ${classes}`, role: "table" },
    el("caption", { class: captionShown ? null : "visually-hidden" }, caption),
    el("thead", { role: "rowgroup" }, head), body);
  const scrolls = cards ? {} : { tabindex: 0, role: "group", "aria-label": `${caption} (scrollable)` };
  return {
    box: el("div", { class: "table-box", ...scrolls }, element),
    show: (rows, ...emptyText) => updateRows(body, rows.length ? rows : [emptyRow(columns, emptyText)]),
    row: (key, cells, attributes) => row(columns, key, cells, attributes),
  };
}

function row(columns, key, cells, attributes = {}) {
  return el("tr", { role: "row", "data-key": key, ...attributes }, cells.map((cell, index) => {
    const { label, kind = "" } = columns[index];
    const shared = { class: cell === "" ? `${kind} vacant` : kind, "data-label": label };
    const content = kind === "actions" ? el("div", {}, cell) : cell;
    return index === 0
      ? el("th", { scope: "row", role: "rowheader", ...shared }, content)
      : el("td", { role: "cell", ...shared }, content);
  }));
}

function emptyRow(columns, text) {
  return el("tr", { role: "row", class: "none", "data-key": "" }, el("td", { role: "cell", class: "empty", colspan: columns.length }, text));
}

// Returns the attributes of a row that calls `open` when clicked. Ignores clicks on buttons and clicks that select text.
export function openOnClick(open) {
  return { "data-opens": "", onclick: ({ target }) => target.closest("button") || !getSelection().isCollapsed || open() };
}

// Replaces only the cells that changed, so that focus and text selection survive. Rows are matched by `data-key`.
function updateRows(body, rows) {
  const focused = body.contains(document.activeElement);
  const wanted = new Map(rows.map((each) => [each.dataset.key, each]));
  for (const old of [...body.children]) {
    const updated = wanted.get(old.dataset.key);
    if (!updated) old.remove();
    else {
      [...updated.children].forEach((cell, index) => {
        if (!old.children[index].isEqualNode(cell)) old.children[index].replaceWith(cell);
      });
      wanted.set(old.dataset.key, old);
    }
  }
  [...wanted.values()].forEach((each, index) => {
    if (body.children[index] !== each) body.insertBefore(each, body.children[index] ?? null);
  });
  if (focused) restoreFocus();
}

// Runs `load(signal)`, which fills the table. If it fails, shows the problem and a button to try again.
export async function loadTable(tableView, slot, nextSignal, load) {
  const runSignal = nextSignal();
  if ((await runOrReport(slot, () => load(runSignal))) || runSignal.aborted) return;
  tableView.show([], button("Try again", () => loadTable(tableView, slot, nextSignal, load)));
}
