// The heading of a view, what it is for, and what can be done with all of it.

import { el } from "./dom.js";

export function viewHead(title, words = "", ...actions) {
  return el("div", { class: "view-head" },
    el("div", {}, el("h2", { tabindex: -1 }, title), words && el("p", {}, words)),
    actions.length > 0 && el("div", { class: "line" }, actions));
}
