// Drawers, which show one thing beside the list that it is in.

import { closeButton } from "./controls.js";
import { open } from "./dialogs.js";
import { el } from "./dom.js";
import { isOver } from "./router.js";

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
