// Dialogs of the browser: Esc closes them, and focus goes back to where it came from.

import { busy, button, closeButton } from "./controls.js";
import { el, newId } from "./dom.js";
import { alertSlot, attempt } from "./messages.js";
import { isOver } from "./router.js";

// `name` is what a screen reader calls it. `fillIn(shut, dialog)` makes what is in it. Resolves when it is closed.
// One that `stays` is closed by its own buttons only. With `leave` it is closed from outside, and that is how to ask for it.
export function open(name, classes, fillIn, { onclose, leave, stays = false } = {}) {
  const { promise: closed, resolve } = Promise.withResolvers();
  // Out of the page at once, and not when the browser tells of it: there may be a key in it.
  const close = (result) => {
    if (!dialog.isConnected) return;
    dialog.close(result);
    dialog.remove();
    onclose?.();
    resolve(result);
  };
  const shut = leave ?? close;
  const dialog = el("dialog", {
    class: classes, "aria-label": name, "data-stays": stays,
    oncancel: (event) => (event.preventDefault(), isHeld() || shut()),
    // Browsers may close it themselves, without asking.
    onclose: () => (leave?.(), close(dialog.returnValue)),
  });
  dialog.append(...[fillIn(shut, dialog)].flat(), el("p", { class: "toast", role: "status" }));
  document.body.append(dialog);
  dialog.showModal();
  return Object.assign(closed, { close });
}

// Asks before `act`, which may fail: then the dialog says why and stays. True once it was done.
export async function confirm(question, words, verb, act, { extra = null, harmless = false } = {}) {
  const closed = open(question, "", (shut, dialog) => {
    const slot = alertSlot();
    const reasons = el("div", { class: "stack-tight soft", id: newId() }, words.map((each) => el("p", {}, each)));
    const yes = button(verb, () => busy(yes, () => busy(no, async () => {
      if (await holding(dialog, () => attempt(slot, act))) shut("done");
    })), harmless ? "primary" : "danger-solid");
    const no = button("Cancel", () => shut(), "", { autofocus: true });
    dialog.setAttribute("aria-describedby", reasons.id);
    return el("div", { class: "inside" }, el("h3", {}, question), reasons, extra, slot, el("div", { class: "choices" }, no, yes));
  });
  return (await closed) === "done";
}

// What is under way cannot be called off: whoever closed the dialog would not hear what has become of it.
async function holding(dialog, act) {
  dialog.dataset.stays = "";
  try {
    return await act();
  } finally {
    delete dialog.dataset.stays;
  }
}

// Whether a dialog is open that nothing but its own buttons may close.
export function isHeld() {
  return document.querySelector("dialog[open][data-stays]") !== null;
}

// Browsers let nobody hold back a second Esc once they have made a cancel of it.
addEventListener("keydown", (event) => event.key === "Escape" && isHeld() && event.preventDefault());

export function closeAll() {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
}

// Drawers, which show one thing beside the list that it is in.

// A head, the parts with its details, and a foot for what can be done.
export function openDrawer(name, title, parts, options) {
  const head = el("div", {}, el("h3", {}, title));
  const foot = el("div", { class: "drawer-foot" });
  const opened = open(name, "drawer", (shut) => [
    el("div", { class: "drawer-head" }, head, closeButton(() => shut())),
    el("div", { class: "drawer-body", tabindex: 0, role: "group", "aria-label": "Details" }, parts),
    foot,
  ], options);
  return { head, foot, opened };
}

// The address opens and closes it. `open(id, leave)` opens one, and `leave` is how it is closed by hand: that takes the
// address back to where it was, or else `forget()` takes the drawer out of it.
export function addressedDrawer(open, forget, signal) {
  let end = () => {};
  return (id) => {
    end();
    if (!id) return;
    let left = false;
    const leave = () => {
      if (left || signal.aborted) return;
      left = true;
      // It stays until the address has changed: whoever was quick enough to go elsewhere meanwhile would be led back, too.
      if (isOver()) {
        history.back();
        return;
      }
      forget();
      end();
    };
    const opened = open(id, leave);
    end = () => {
      left = true;
      opened.close();
    };
  };
}
