// Dialogs of the browser: Esc closes them, and focus goes back to where it came from.

import { button, busy } from "./controls.js";
import { el, newId } from "./dom.js";
import { alertSlot, attempt } from "./messages.js";

// `name` is what a screen reader calls it. `fillIn(shut, dialog)` makes what is in it. Resolves when it is closed.
// One that `stays` is closed by its own buttons only.
export function open(name, classes, fillIn, { onclose, stays = false } = {}) {
  // Out of the page at once, and not when the browser tells of it: there may be a key in it.
  const shut = (result) => {
    dialog.close(result);
    dialog.remove();
  };
  const oncancel = (event) => (event.preventDefault(), stays || shut());
  // Browsers let nobody hold back a second Esc once they have made a cancel of it.
  const onkeydown = (event) => stays && event.key === "Escape" && event.preventDefault();
  const dialog = el("dialog", { class: classes, "aria-label": name, oncancel, onkeydown });
  const closed = new Promise((resolve) => dialog.addEventListener("close", () => {
    dialog.remove();
    onclose?.();
    resolve(dialog.returnValue);
  }));
  dialog.append(...[fillIn(shut, dialog)].flat(), el("p", { class: "toast", role: "status" }));
  document.body.append(dialog);
  dialog.showModal();
  return Object.assign(closed, { dialog });
}

// Asks before `act`, which may fail: then the dialog says why and stays. True once it was done.
export async function confirm(question, words, verb, act, { extra = null, harmless = false } = {}) {
  const closed = open(question, "", (shut, dialog) => {
    const slot = alertSlot();
    const reasons = el("div", { class: "stack-tight soft", id: newId() }, words.map((each) => el("p", {}, each)));
    const yes = button(verb, () => busy(yes, async () => {
      if (await attempt(slot, act)) shut("done");
    }), harmless ? "primary" : "danger-solid");
    const no = button("Cancel", () => shut(), "", { autofocus: true });
    dialog.setAttribute("aria-describedby", reasons.id);
    return el("div", { class: "inside" }, el("h3", {}, question), reasons, extra, slot, el("div", { class: "choices" }, no, yes));
  });
  return (await closed) === "done";
}

export function closeAll() {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
}
