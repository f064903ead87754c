// To the clipboard, also where the page came by plain http from another machine and has no right to the newer way.

import { el } from "./dom.js";
import { say } from "./messages.js";

async function copy(text, holder = document.body) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text, holder);
  }
}

function copyBySelection(text, holder) {
  const back = document.activeElement;
  const area = el("textarea", { class: "unseen", "aria-hidden": "true", readonly: true });
  area.value = text;
  // Within the dialog, if there is one: nothing else can be selected then.
  holder.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  back?.focus();
  return done;
}

// `describedBy` is the id of what tells it from others of its name.
export function copyButton(text, { label = "Copy", classes = "button small", describedBy = null, copied = "Copied." } = {}) {
  return el("button", {
    type: "button",
    class: classes,
    "aria-describedby": describedBy,
    onclick: async ({ currentTarget }) => {
      const done = await copy(typeof text === "function" ? text() : text, currentTarget.closest("dialog") ?? document.body);
      say(done ? copied : "The browser does not let this page copy. Select the text and copy it yourself.");
    },
  }, label);
}
