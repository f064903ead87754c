// What a table is filled with, or a way to try again.

import { button } from "./controls.js";
import { attempt } from "./messages.js";

// `look(until)` fills the rows; what came in its way is shown in the slot. Whose turn it is says `turn`, of latest.js.
export async function load(rows, slot, turn, look) {
  const until = turn();
  if ((await attempt(slot, () => look(until))) || until.aborted) return;
  rows.show([], button("Try again", () => load(rows, slot, turn, look)));
}
