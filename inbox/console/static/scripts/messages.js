// Toasts, which disappear after a few seconds, and problems, which stay next to their cause.

import { el, fill, topmostDialog } from "./dom.js";

const TOAST_MS = 5000;
let timer;

// Screen readers do not announce changes behind a modal dialog, so the toast appears in the topmost dialog.
export function showToast(text) {
  clearTimeout(timer);
  for (const each of document.querySelectorAll(".toast")) each.textContent = "";
  const region = topmostDialog()?.querySelector(".toast") ?? document.getElementById("status");
  region.textContent = text;
  timer = setTimeout(() => (region.textContent = ""), TOAST_MS);
}

export function alertSlot() {
  return el("div", { class: "slot", role: "alert" });
}

export function showProblem(slot, problem) {
  // The detail of a problem with a single error contains that error.
  const errors = problem.errors?.filter((error) => !problem.detail?.includes(error.detail)) ?? [];
  fill(slot, el("div", { class: "notice bad" },
    el("p", {}, el("strong", {}, problem.title ?? "Something went wrong"), problem.detail ? `. ${problem.detail}` : "."),
    errors.length > 0 && el("ul", {}, errors.map((error) => el("li", {}, [error.pointer?.slice(1), error.detail].filter(Boolean).join(": ")))),
    problem.requestId && el("p", { class: "request" }, `Request ID: ${problem.requestId}`)));
}

// Runs `action` and shows its problem, if any, in the slot. Returns true on success.
export async function runOrReport(slot, action) {
  fill(slot);
  try {
    await action();
    return true;
  } catch (error) {
    if (error.name === "AbortError") return false;
    showProblem(slot, error);
    if (!error.title) throw error;
    return false;
  }
}
