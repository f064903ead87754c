// Buttons, fields and the like, the same everywhere.

import { el, icon, keepFocus, newId } from "./dom.js";

export function button(label, onclick, classes = "", attributes = {}) {
  return el("button", { type: "button", class: `button ${classes}`, onclick, ...attributes }, label);
}

export function submit(label) {
  return el("button", { type: "submit", class: "button primary" }, label);
}

export function closeButton(onclick) {
  return el("button", { type: "button", class: "button plain square", "aria-label": "Close", onclick }, icon("close"));
}

// A label, its control, a hint and a place for what is wrong with it. `fault(text)` fills that, at once aloud if it is urgent.
export function field(label, control, hint = null, { urgent = false } = {}) {
  const id = (control.id ||= newId());
  const hintPart = hint ? el("p", { class: "hint", id: `${id}-hint` }, hint) : null;
  const faultPart = el("p", { class: "fault", id: `${id}-fault`, ...(urgent ? { role: "alert" } : { "aria-live": "polite" }) });
  control.setAttribute("aria-describedby", hint ? `${id}-hint ${id}-fault` : `${id}-fault`);
  const element = el("div", { class: "field" }, el("label", { for: id }, label), control, hintPart, faultPart);
  element.fault = (text) => {
    faultPart.textContent = text;
    if (text) control.setAttribute("aria-invalid", "true");
    else control.removeAttribute("aria-invalid");
  };
  return element;
}

export function input(attributes = {}) {
  return el("input", { type: "text", ...attributes, class: `input ${attributes.class ?? ""}`, autocomplete: "off", spellcheck: "false" });
}

export function select(options, chosen = "") {
  const element = el("select", { class: "input" }, options.map(([value, label]) => el("option", { value }, label)));
  if (options.some(([value]) => value === chosen)) element.value = chosen;
  return element;
}

export function check(label, { checked = false, hint = null, ...attributes } = {}) {
  const box = el("input", { type: "checkbox", ...attributes });
  box.checked = checked;
  const element = el("label", { class: "check" }, box, el("span", {}, label), hint ? el("span", { class: "hint" }, hint) : null);
  element.box = box;
  return element;
}

// One of a few, of which one is always chosen.
export function choice(legend, options, chosen, onchange) {
  const name = newId();
  const radios = options.map(([value]) => el("input", { type: "radio", name, value, onchange: () => onchange(value) }));
  const element = el("fieldset", {}, el("legend", { class: "unseen" }, legend),
    el("div", { class: "segments" }, options.map(([, label], place) => el("label", {}, radios[place], label))));
  element.choose = (value) => radios.forEach((radio) => (radio.checked = radio.value === value));
  element.choose(chosen);
  return element;
}

export function badge(text, kind = "", dot = false) {
  return el("span", { class: `badge ${kind} ${dot ? "dot" : ""}` }, text);
}

const KINDS = {
  undelivered: "info", leased: "warn", delivered: "good", dead: "bad",
  active: "good", expired: "", revoked: "",
  UNVALIDATED: "warn", VALIDATED: "info", REGISTERED: "good", SUSPENDED: "bad", deleted: "",
};

export function statusBadge(status) {
  return badge(status, KINDS[status], true);
}

export function form(onsubmit, ...children) {
  return el("form", { class: "form", novalidate: true, onsubmit: (event) => (event.preventDefault(), onsubmit()) }, ...children);
}

// No second click while the first one is under way. Browsers take the focus from what is disabled, so it is given back.
export async function busy(control, act) {
  const focused = document.activeElement === control;
  control.disabled = true;
  try {
    return await act();
  } finally {
    control.disabled = false;
    if (focused && document.activeElement === document.body) control.focus();
    if (focused) keepFocus();
  }
}

export function busyButton(label, act, classes, attributes) {
  const element = button(label, () => busy(element, act), classes, attributes);
  return element;
}

// The heading of a view, what it is for, and what can be done with all of it.

export function viewHead(title, words = "", ...actions) {
  return el("div", { class: "view-head" },
    el("div", {}, el("h2", { tabindex: -1 }, title), words && el("p", {}, words)),
    actions.length > 0 && el("div", { class: "line" }, actions));
}
