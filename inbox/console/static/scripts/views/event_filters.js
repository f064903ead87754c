// Filters of the Events view. They are kept in the URL.

import { field, input, select } from "../controls.js";
import { el } from "../dom.js";
import { eventTypeError } from "./event_types.js";

const STATUSES = ["undelivered", "leased", "delivered", "dead"];
const DEBOUNCE_MS = 300;
const PHONE = matchMedia("(max-width: 47.99rem)");

export function eventFilters(initial, onchange, signal) {
  const status = select([["", "Any"], ...STATUSES.map((each) => [each, each])]);
  const type = input({ placeholder: "order.created" });
  const since = input({ type: "datetime-local" });
  const until = input({ type: "datetime-local" });
  const inbox = select([["", "default"]]);
  const typeField = field("Type", type);
  const times = [field("Since", since), field("Until", until)];
  for (const each of times) each.classList.add("wide");
  let timer;
  const cancelTimer = () => clearTimeout(timer);
  const validate = () => {
    const error = eventTypeError(type.value);
    typeField.setError(error);
    return !error;
  };
  type.addEventListener("input", () => {
    cancelTimer();
    validate();
    timer = setTimeout(onchange, DEBOUNCE_MS);
  });
  signal.addEventListener("abort", cancelTimer);
  for (const control of [status, since, until, inbox]) control.addEventListener("change", onchange);

  function setValues(wanted) {
    status.value = STATUSES.includes(wanted.status) ? wanted.status : "";
    type.value = wanted.type ?? "";
    since.value = wanted.since ?? "";
    until.value = wanted.until ?? "";
    addOption(inbox, wanted.inbox);
    cancelTimer();
    validate();
  }
  setValues(initial);

  const query = () => ({ status: status.value, type: type.value.trim(), since: since.value, until: until.value, inbox: inbox.value });
  const hasAny = () => Object.entries(query()).some(([name, value]) => name !== "inbox" && value !== "");
  return {
    element: collapsible([field("Status", status), typeField, ...times, field("Inbox", inbox)], hasAny(), signal),
    query,
    hasAny,
    validate,
    // Takes the values of a URL. Returns true if they changed.
    apply: (wanted) => {
      const before = JSON.stringify(query());
      setValues(wanted);
      return JSON.stringify(query()) !== before;
    },
    parameters: () => ({
      status: status.value,
      event_type: type.value.trim(),
      since: utcTimestamp(since.value),
      until: utcTimestamp(until.value),
      inbox: inbox.value,
    }),
    addInboxes: (inboxes) => inboxes.forEach(({ name }) => addOption(inbox, name, inbox.value)),
  };
}

// Collapsed on phones, where the filters would fill the screen.
function collapsible(fields, isOpen, signal) {
  const details = el("details", { class: "card foldable" }, el("summary", {}, "Filters"), el("div", { class: "filters" }, fields));
  details.open = isOpen || !PHONE.matches;
  PHONE.addEventListener("change", () => (details.open = details.open || !PHONE.matches), { signal });
  return details;
}

function addOption(control, name, selected = name) {
  if (name && ![...control.options].some((each) => each.value === name)) control.append(el("option", { value: name }, name));
  control.value = selected ?? "";
}

function utcTimestamp(local) {
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
