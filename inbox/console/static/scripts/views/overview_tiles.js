// The four figures at the top.

import { el, fill } from "../dom.js";
import { bytes, count, span, time } from "../moments.js";
import { address } from "../router.js";
import { WINDOWS } from "../stats.js";

export function tiles() {
  const waiting = tile("Undelivered now");
  const oldest = tile("Oldest waiting");
  const received = tile("Received");
  const delivered = tile("Delivered");
  const element = el("dl", { class: "tiles" }, [waiting, oldest, received, delivered].map((each) => each.element));

  function show({ undelivered, oldest_undelivered_at: since, oldest_undelivered_age_seconds: age, totals, window }) {
    const within = `in ${new Map(WINDOWS).get(window)}`;
    waiting.show(count(undelivered), "in the inbox default");
    oldest.show(since ? span(age) : "–", since ? ["since ", time(since, "short")] : "nothing waits there");
    received.show(count(totals.received), `${within}, ${bytes(totals.bytes)}`);
    delivered.show(count(totals.delivered), [within, totals.dead > 0 && dead(totals.dead)]);
  }
  return { element, show };
}

function dead(amount) {
  return [", ", el("a", { href: address("events", { status: "dead" }) }, `${count(amount)} dead`)];
}

function tile(name) {
  const figure = el("dd", { class: "figure" }, "…");
  const aside = el("dd", { class: "aside" });
  return {
    element: el("div", { class: "card tile" }, el("dt", {}, name), figure, aside),
    show(amount, ...words) {
      if (figure.textContent !== amount) figure.textContent = amount;
      fill(aside, words.flat(2));
    },
  };
}
