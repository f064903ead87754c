// Lines and settings to paste elsewhere, with this service's own address.

import { latest } from "../async.js";
import { copyButton } from "../clipboard.js";
import { button, check, viewHead } from "../controls.js";
import { el, fill, newId } from "../dom.js";
import { alertSlot, attempt } from "../messages.js";
import { session } from "../session.js";
import { GUIDES } from "./connect_guides.js";

export function openConnect(root, { signal }) {
  const turn = latest(signal);
  const slot = alertSlot();
  const panel = el("div", { class: "stack", role: "tabpanel", id: newId(), tabindex: 0 });
  const show = check("Show my key in these lines");
  let current = GUIDES[0];
  show.box.addEventListener("change", fillPanel);

  const tabs = GUIDES.map((guide) => el("button", {
    type: "button", role: "tab", id: newId(), "aria-controls": panel.id, onclick: () => choose(guide),
  }, guide.name));
  const list = el("div", { class: "tabs", role: "tablist", "aria-label": "Programs", onkeydown: move }, tabs);

  function choose(guide) {
    current = guide;
    tabs.forEach((tab, place) => {
      const chosen = GUIDES[place] === guide;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      if (chosen) panel.setAttribute("aria-labelledby", tab.id);
    });
    fillPanel();
  }

  function move(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (GUIDES.indexOf(current) + step + GUIDES.length) % GUIDES.length;
    event.preventDefault();
    choose(GUIDES[next]);
    tabs[next].focus();
  }

  async function fillPanel() {
    const until = turn();
    const key = show.box.checked ? session.key : null;
    // At once, with the key that may be in it.
    fill(panel, el("p", { class: "soft" }, current.words, current.environment && !key
      ? [" First, with your key: ", el("code", {}, "export INBOX_API_KEY=…")] : []));
    const loaded = await attempt(slot, async () => {
      panel.append(...(await current.parts({ url: location.origin, key, signal: until })).map(snippet));
    });
    if (!loaded && !until.aborted) panel.append(button("Try again", () => (panel.focus(), fillPanel())));
  }

  root.append(
    viewHead("Connect", "Lines to paste, with the address of this service. A program of yours should get a key of its own: make it under Keys.", show),
    list, slot, panel,
    el("p", { class: "faint small" }, "Every call, parameter and error: ", el("a", { href: "/docs" }, "API docs"), ". What each error means: ", el("a", { href: "/problems" }, "Problems"), "."));
  choose(GUIDES[0]);
}

function snippet({ title, text, note }) {
  const id = newId();
  return el("section", { class: "card snippet", "aria-labelledby": id },
    el("div", { class: "snippet-head" }, el("h3", { id }, title), copyButton(text, { describedBy: id })),
    note && el("p", { class: "soft small" }, note),
    el("pre", { tabindex: 0, role: "group", "aria-labelledby": id }, text));
}
