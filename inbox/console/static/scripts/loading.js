// What a table is filled with, or a way to try again.

import { button } from "./controls.js";
import { attempt } from "./messages.js";

// `act` fills the rows; what came in its way is shown in the slot.
export async function load(rows, slot, act) {
  if (!(await attempt(slot, act))) rows.show([], button("Try again", () => load(rows, slot, act)));
}
