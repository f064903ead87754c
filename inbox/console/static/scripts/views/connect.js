// Snippets for clients, with this service's URL filled in.

import { supersedingSignals } from "../async.js";
import { copyButton } from "../clipboard.js";
import { button, checkbox, viewHeader } from "../controls.js";
import { el, fill, newId } from "../dom.js";
import { alertSlot, runOrReport } from "../messages.js";
import { session } from "../session.js";
import { GUIDES } from "./connect_guides.js";

export function openConnect(root, { signal }) {
  const nextSignal = supersedingSignals(signal);
  const slot = alertSlot();
  const panel = el("div", { class: "stack", role: "tabpanel", id: newId(), tabindex: 0 });
  const showKey = checkbox("Show my API key");
  let selected = GUIDES[0];
  showKey.box.addEventListener("change", fillPanel);

  const tabs = GUIDES.map((guide) => el("button", {
    type: "button", role: "tab", id: newId(), "aria-controls": panel.id, onclick: () => select(guide),
  }, guide.name));
  const list = el("div", { class: "tabs", role: "tablist", "aria-label": "Clients", onkeydown: moveWithArrows }, tabs);

  function select(guide) {
    selected = guide;
    tabs.forEach((tab, index) => {
      const isSelected = GUIDES[index] === guide;
      tab.setAttribute("aria-selected", String(isSelected));
      tab.tabIndex = isSelected ? 0 : -1;
      if (isSelected) panel.setAttribute("aria-labelledby", tab.id);
    });
    fillPanel();
  }

  function moveWithArrows(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (GUIDES.indexOf(selected) + step + GUIDES.length) % GUIDES.length;
    event.preventDefault();
    select(GUIDES[next]);
    tabs[next].focus();
  }

  async function fillPanel() {
    const current = nextSignal();
    const key = showKey.box.checked ? session.key : null;
    // Clears the panel before loading: it may show the key.
    fill(panel, el("p", { class: "soft" }, selected.description, selected.environment && !key
      ? [" First, set your key: ", el("code", {}, "export INBOX_API_KEY=…")] : []));
    const loaded = await runOrReport(slot, async () => {
      panel.append(...(await selected.parts({ url: location.origin, key, signal: current })).map(snippet));
    });
    if (!loaded && !current.aborted) panel.append(button("Try again", () => (panel.focus(), fillPanel())));
  }

  root.append(
    viewHeader("Connect", "Connect your tools and programs to this service. Create a separate key for each one under Keys.", showKey),
    list, slot, panel,
    el("p", { class: "faint small" }, "See the ", el("a", { href: "/docs" }, "API docs"), " for all endpoints, and ",
      el("a", { href: "/problems" }, "Problems"), " for all errors."));
  select(GUIDES[0]);
}

function snippet({ title, text, note }) {
  const id = newId();
  return el("section", { class: "card snippet", "aria-labelledby": id },
    el("div", { class: "snippet-head" }, el("h3", { id }, title), copyButton(text, { describedBy: id })),
    note && el("p", { class: "soft small" }, note),
    el("pre", { tabindex: 0, role: "group", "aria-labelledby": id }, text));
}
