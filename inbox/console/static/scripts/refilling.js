// Brings rows up to date in place: what has not changed is not touched, so that focus and selections stay where they are.

import { keepFocus } from "./focus.js";

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
