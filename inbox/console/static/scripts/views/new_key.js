// A key that was just made: shown this once.

import { copyButton } from "../clipboard.js";
import { button } from "../controls.js";
import { open } from "../dialogs.js";
import { el } from "../dom.js";

export function showNewKey(key, name) {
  return open("New key", "", (shut) => el("div", { class: "inside" },
    el("h3", {}, "New key"),
    el("p", { class: "soft" }, name ? `The key ${name}, shown this once. ` : "Shown this once. ", "Only its hash is stored: nobody can show it again."),
    el("p", { class: "secret" }, key),
    el("div", { class: "choices" },
      copyButton(key, { classes: "button" }),
      button("I have saved it", () => shut(), "primary"))), { stays: true });
}
