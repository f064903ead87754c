// What is said to people: news that go away by themselves, and problems that stay where they arose.

import { el, fill, topmostDialog } from "./dom.js";

const SHOWN_MS = 5000;
let timer;

// Into the topmost dialog, if one is open: everything behind it is silent.
export function say(text) {
  const regions = [...document.querySelectorAll("#status, dialog[open] > .toast")];
  clearTimeout(timer);
  for (const region of regions) region.textContent = "";
  const region = regions.find((each) => each.closest("dialog:modal") === topmostDialog()) ?? regions[0];
  region.textContent = text;
  timer = setTimeout(() => (region.textContent = ""), SHOWN_MS);
}

// A place that is announced as soon as something stands in it.
export function alertSlot() {
  return el("div", { class: "slot", role: "alert" });
}

export function showProblem(slot, problem) {
  fill(
    slot,
    el(
      "div",
      { class: "notice bad" },
      el("p", {}, el("strong", {}, problem.title ?? "Something went wrong"), problem.detail ? `. ${problem.detail}` : "."),
      problem.faults?.length
        ? el("ul", {}, problem.faults.map((fault) => el("li", {}, `${named(fault.pointer)}${fault.detail}`)))
        : null,
      problem.requestId ? el("p", { class: "request" }, `Request id ${problem.requestId}`) : null,
    ),
  );
}

function named(pointer) {
  return pointer && pointer !== "/" ? `${pointer.slice(1)}: ` : "";
}

// Does it, and shows in the slot what came in the way. True where nothing did.
export async function attempt(slot, act) {
  fill(slot);
  try {
    await act();
    return true;
  } catch (error) {
    if (error.name === "AbortError") return false;
    showProblem(slot, error);
    if (!error.title) throw error;
    return false;
  }
}
