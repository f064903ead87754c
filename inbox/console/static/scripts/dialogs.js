// Modal dialogs and drawers, built on <dialog>: Esc closes them, and the focus returns to the element that opened them.

import { button, closeButton, disableDuring } from "./controls.js";
import { el, fill, newId } from "./dom.js";
import { alertSlot, runOrReport } from "./messages.js";
import { isOverlay } from "./router.js";

// Shows what `render(close, dialog)` returns. Returns a promise of the `result` that `close(result)` was called with. The promise
// also has the properties `close` and `signal`; `signal` aborts when the dialog closes. Only buttons close a `locked` dialog. If
// `leave` is given, Esc and the `close` passed to `render` call it; the returned `close` still closes the dialog.
export function openDialog(name, classes, render, { leave, locked = false } = {}) {
  const { promise: closed, resolve } = Promise.withResolvers();
  const closing = new AbortController();
  // Removes the dialog at once rather than on the `close` event: it may show a key.
  const close = (result) => {
    if (!dialog.isConnected) return;
    dialog.close(result);
    dialog.remove();
    closing.abort();
    resolve(result);
  };
  const requestClose = leave ?? close;
  const dialog = el("dialog", {
    class: classes, "aria-label": name, "data-locked": locked,
    oncancel: (event) => (event.preventDefault(), isLocked() || requestClose()),
    // Some browsers close a dialog without a `cancel` event.
    onclose: () => (leave?.(), close(dialog.returnValue)),
  });
  fill(dialog, render(requestClose, dialog), el("p", { class: "toast", role: "status" }));
  document.body.append(dialog);
  dialog.showModal();
  return Object.assign(closed, { close, signal: closing.signal });
}

// Asks for confirmation, then runs `action`. If it fails, the dialog shows why and stays open. Returns true on success.
// Paragraphs that are null or false are left out.
export async function confirmAction(title, paragraphs, verb, action, { extra = null, danger = true } = {}) {
  const closed = openDialog(title, "", (close, dialog) => {
    const slot = alertSlot();
    const description = el("div", { class: "stack-tight soft", id: newId() }, paragraphs.map((each) => each && el("p", {}, each)));
    const confirm = button(verb, () => disableDuring(confirm, () => disableDuring(cancel, async () => {
      // A request that was sent cannot be cancelled, so the dialog stays open until its outcome is known.
      dialog.dataset.locked = "";
      const done = await runOrReport(slot, action).finally(() => delete dialog.dataset.locked);
      if (done) close("done");
    })), danger ? "danger-solid" : "primary");
    const cancel = button("Cancel", () => close(), "", { autofocus: true });
    dialog.setAttribute("aria-describedby", description.id);
    return el("div", { class: "inside" }, el("h3", {}, title), description, extra, slot, el("div", { class: "choices" }, cancel, confirm));
  });
  return (await closed) === "done";
}

export function isLocked() {
  return document.querySelector("dialog[open][data-locked]") !== null;
}

// Browsers do not let a page prevent the second `cancel` event in a row, so Esc is stopped earlier.
addEventListener("keydown", (event) => event.key === "Escape" && isLocked() && event.preventDefault());

export function closeAllDialogs() {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
}

// Returns {head, foot, opened}: elements to fill, and the result of `openDialog`.
export function openDrawer(name, title, parts, leave) {
  const head = el("div", {}, el("h3", {}, title));
  const foot = el("div", { class: "drawer-foot" });
  const opened = openDialog(name, "drawer", (close) => [
    el("div", { class: "drawer-head" }, head, closeButton(() => close())),
    el("div", { class: "drawer-body", tabindex: 0, role: "group", "aria-label": "Details" }, parts),
    foot,
  ], { leave });
  return { head, foot, opened };
}

// Returns a function that shows the drawer for an ID from the URL, or closes it if the ID is missing. `open(id, leave)` opens
// the drawer and returns the result of `openDialog`. `leave` goes back in the history, or calls `clearUrl` if the page was opened
// with the drawer in its URL.
export function routedDrawer(open, clearUrl, signal) {
  let close = () => {};
  return (id) => {
    close();
    if (!id) return;
    let left = false;
    const leave = () => {
      if (left || signal.aborted) return;
      left = true;
      // The drawer closes with the hashchange. Closing it now would let the user navigate before the history has moved.
      if (isOverlay()) return history.back();
      clearUrl();
      close();
    };
    const opened = open(id, leave);
    close = () => {
      left = true;
      opened.close();
    };
  };
}
