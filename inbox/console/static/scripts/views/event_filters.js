// Which events are wanted. The address keeps it, so that a reload shows the same.

import { field, input, select } from "../controls.js";
import { el } from "../dom.js";
import { EVENT_TYPE } from "./event_types.js";

const STATUSES = ["undelivered", "leased", "delivered", "dead"];
const TYPING_MS = 300;
const PHONE = matchMedia("(max-width: 47.99rem)");

export function eventFilters(query, changed, signal) {
  const status = select([["", "any"], ...STATUSES.map((each) => [each, each])]);
  const type = input({ placeholder: "order.created" });
  const since = input({ type: "datetime-local" });
  const until = input({ type: "datetime-local" });
  const inbox = select([["", "default"]]);
  const typeField = field("Type", type);
  const times = [field("Since", since), field("Until", until)];
  for (const each of times) each.classList.add("wide");
  let timer;
  const forget = () => clearTimeout(timer);
  const isRight = () => {
    const right = type.value.trim() === "" || EVENT_TYPE.test(type.value.trim());
    typeField.fault(right ? "" : "Letters, digits and . _ : / - only.");
    return right;
  };
  type.addEventListener("input", () => {
    forget();
    isRight();
    timer = setTimeout(changed, TYPING_MS);
  });
  signal.addEventListener("abort", forget);
  for (const control of [status, since, until, inbox]) control.addEventListener("change", changed);

  function take(wanted) {
    status.value = STATUSES.includes(wanted.status) ? wanted.status : "";
    type.value = wanted.type ?? "";
    since.value = wanted.since ?? "";
    until.value = wanted.until ?? "";
    keep(inbox, wanted.inbox);
    forget();
    isRight();
  }
  take(query);

  const address = () => ({ status: status.value, type: type.value.trim(), since: since.value, until: until.value, inbox: inbox.value });
  const any = () => Object.entries(address()).some(([name, value]) => name !== "inbox" && value !== "");
  return {
    element: foldable([field("Status", status), typeField, ...times, field("Inbox", inbox)], any(), signal),
    address,
    any,
    isRight,
    // What the address asks for. True where that is something else than before.
    take: (wanted) => {
      const before = JSON.stringify(address());
      take(wanted);
      return JSON.stringify(address()) !== before;
    },
    parameters: () => ({
      status: status.value,
      event_type: type.value.trim(),
      since: moment(since.value),
      until: moment(until.value),
      inbox: inbox.value,
    }),
    offer: (inboxes) => inboxes.forEach(({ name }) => keep(inbox, name, inbox.value)),
  };
}

// Folded away on a phone, where they would take the whole screen.
function foldable(fields, unfolded, signal) {
  const details = el("details", { class: "card foldable" }, el("summary", {}, "Filters"), el("div", { class: "filters" }, fields));
  details.open = unfolded || !PHONE.matches;
  PHONE.addEventListener("change", () => (details.open = details.open || !PHONE.matches), { signal });
  return details;
}

function keep(options, name, chosen = name) {
  if (name && ![...options.options].some((each) => each.value === name)) options.append(el("option", { value: name }, name));
  options.value = chosen ?? "";
}

function moment(local) {
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
