// Copy buttons.

import { el } from "./dom.js";
import { showToast } from "./messages.js";

async function copy(text, parent) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelection(text, parent);
  }
}

// Browsers refuse the clipboard API on plain HTTP, except on localhost.
function copySelection(text, parent) {
  const focused = document.activeElement;
  const area = el("textarea", { class: "visually-hidden", "aria-hidden": "true", readonly: true });
  area.value = text;
  // While a modal dialog is open, only elements inside it can be selected.
  parent.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return copied;
}

// `describedBy` is the ID of an element that tells this button apart from others with the same label.
export function copyButton(text, { label = "Copy", classes = "button small", describedBy = null, message = "Copied" } = {}) {
  return el("button", {
    type: "button",
    class: classes,
    "aria-describedby": describedBy,
    onclick: async ({ currentTarget }) => {
      const copied = await copy(typeof text === "function" ? text() : text, currentTarget.closest("dialog") ?? document.body);
      showToast(copied ? message : "Your browser blocked copying. Select the text and copy it manually.");
    },
  }, label);
}
