// The key of this tab could not be tried: it is kept until the service itself refuses it.

import { busyButton, button } from "../controls.js";
import { el, fill } from "../dom.js";
import { alertSlot, showProblem } from "../messages.js";

export function openNoAnswer(main, problem, again, signOut) {
  const slot = alertSlot();
  const retry = busyButton("Try again", again, "primary");
  fill(main, el("div", { class: "sign-in" }, el("section", { class: "card stack", "aria-labelledby": "no-answer" },
    el("h2", { id: "no-answer", tabindex: -1 }, "The console could not be opened"),
    slot,
    el("p", { class: "faint" }, "Your key is kept in this tab."),
    el("div", { class: "line" }, retry, button("Sign out", signOut)))));
  showProblem(slot, problem);
  retry.focus();
}
