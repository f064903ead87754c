// Buttons, form fields, badges and view headers.

import { el, icon, newId, restoreFocus, userText } from "./dom.js";
import { alertSlot, runOrReport } from "./messages.js";

export function button(label, onclick, classes = "", attributes = {}) {
  return el("button", { type: "button", class: `button ${classes}`, onclick, ...attributes }, label);
}

export function closeButton(onclick) {
  return el("button", { type: "button", class: "button plain square", "aria-label": "Close", onclick }, icon("close"));
}

// Returns a control with its label, hint and error message. `check(value)` returns an error message, or "" if the value is
// valid. `validate()` shows it, and returns the control if it is invalid. Screen readers announce it at once if `urgent`.
export function field(label, control, { hint = null, check = () => "", urgent = false } = {}) {
  const id = (control.id ||= newId());
  const error = el("p", { class: "field-error", id: `${id}-error`, ...(urgent ? { role: "alert" } : { "aria-live": "polite" }) });
  control.setAttribute("aria-describedby", hint ? `${id}-hint ${id}-error` : `${id}-error`);
  const element = el("div", { class: "field" },
    el("label", { for: id }, label), control, hint && el("p", { class: "hint", id: `${id}-hint` }, hint), error);
  element.setError = (text) => {
    // Screen readers would announce an unchanged error again.
    if (error.textContent !== text) error.textContent = text;
    control.ariaInvalid = text ? "true" : null;
  };
  element.validate = () => {
    element.setError(check(control.value));
    return control.ariaInvalid && control;
  };
  return element;
}

export function input(attributes = {}) {
  return el("input", { type: "text", ...attributes, class: `input ${attributes.class ?? ""}`, autocomplete: "off", spellcheck: "false" });
}

const EVENT_TYPE = /^[A-Za-z0-9._:/-]*$/;
const MAX_EVENT_TYPE_LENGTH = 128;

export function eventTypeField(control, hint) {
  return field("Type", control, { hint, check: (text) => {
    const type = text.trim();
    if (!EVENT_TYPE.test(type)) return "Use letters, digits and . _ : / - only.";
    return type.length > MAX_EVENT_TYPE_LENGTH ? `Use up to ${MAX_EVENT_TYPE_LENGTH} characters.` : "";
  } });
}

export function eventTypeLabel(type) {
  return type === null ? el("span", { class: "faint" }, "(no type)") : userText(type);
}

export function select(options, selected = "") {
  return el("select", { class: "input" }, options.map(([value, label]) => el("option", { value, selected: value === selected }, label)));
}

export function checkbox(label, { hint = null, ...attributes } = {}) {
  const box = el("input", { type: "checkbox", ...attributes });
  const element = el("label", { class: "check" }, box, el("span", {}, label), hint && el("span", { class: "hint" }, hint));
  element.box = box;
  return element;
}

export function segmentedControl(legend, options, onchange) {
  const name = newId();
  const radios = options.map(([value]) => el("input", { type: "radio", name, value, onchange: () => onchange(value) }));
  const element = el("fieldset", {}, el("legend", { class: "visually-hidden" }, legend),
    el("div", { class: "segments" }, options.map(([, label], index) => el("label", {}, radios[index], label))));
  element.select = (value) => radios.forEach((radio) => (radio.checked = radio.value === value));
  return element;
}

export function badge(text, classes = "") {
  return el("span", { class: `badge ${classes}` }, text);
}

const STATUS_KINDS = {
  undelivered: "info", leased: "warn", delivered: "good", dead: "bad",
  active: "good", UNVALIDATED: "warn", VALIDATED: "info", REGISTERED: "good", SUSPENDED: "bad",
};

export function statusBadge(status) {
  return badge(status, `dot ${STATUS_KINDS[status] ?? ""}`);
}

// Returns a form. Submitting it focuses the first invalid field, or runs `action` and shows its problem.
export function form(verb, action, ...content) {
  const slot = alertSlot();
  const submit = el("button", { type: "submit", class: "button primary" }, verb);
  const element = el("form", { class: "stack", novalidate: true, onsubmit: async (event) => {
    event.preventDefault();
    const [invalid] = [...element.querySelectorAll(".field")].map((each) => each.validate()).filter(Boolean);
    if (invalid) return invalid.focus();
    await disableDuring(submit, () => runOrReport(slot, action));
    // On a phone, the problem may be below the visible part of the page.
    slot.firstChild?.scrollIntoView({ block: "nearest" });
  } }, ...content, slot, el("div", {}, submit));
  return element;
}

export function formCard(title, formElement) {
  const id = newId();
  return el("section", { class: "card stack", "aria-labelledby": id }, el("h3", { id }, title), formElement);
}

// Prevents a second click while the action runs. Browsers move the focus away from disabled controls, so it is restored.
export async function disableDuring(control, action) {
  const focused = document.activeElement === control;
  control.disabled = true;
  try {
    return await action();
  } finally {
    control.disabled = false;
    if (focused && document.activeElement === document.body) control.focus();
    if (focused) restoreFocus();
  }
}

export function asyncButton(label, action, classes, attributes) {
  const element = button(label, () => disableDuring(element, action), classes, attributes);
  return element;
}

export function viewHeader(title, description = "", ...actions) {
  return el("div", { class: "view-head" },
    el("div", {}, el("h2", { tabindex: -1 }, title), description && el("p", {}, description)),
    actions.length > 0 && el("div", { class: "line" }, actions));
}
