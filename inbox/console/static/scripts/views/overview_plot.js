// The plot, and the same as a table for those who cannot see it.

import { chart } from "../chart.js";
import { el } from "../dom.js";
import { count, dayOf, hourOf } from "../moments.js";
import { table } from "../tables.js";

export function plotCard(signal) {
  const holder = el("div", { class: "plot" });
  const picture = el("div", { role: "img" }, holder);
  const legend = { received: el("span", { class: "received" }), delivered: el("span", { class: "delivered" }), when: el("span", {}) };
  const figures = table("Received and delivered", [{ label: "From" }, { label: "Received", kind: "number" }, { label: "Delivered", kind: "number" }], { cards: false });
  const heading = el("h3", {}, "Received and delivered");
  let now = null;
  const draw = chart(holder, point, signal);

  function label({ start }) {
    return now.unit === "hour" ? hourOf(start) : `${dayOf(start)} (UTC)`;
  }

  function point(bucket) {
    legend.received.textContent = bucket ? `Received ${count(bucket.received)}` : "Received";
    legend.delivered.textContent = bucket ? `Delivered ${count(bucket.delivered)}` : "Delivered";
    legend.when.textContent = bucket ? label(bucket) : "";
    legend.when.hidden = !bucket;
  }

  function show(stats) {
    const unit = stats.window === "24h" ? "hour" : "day";
    now = { unit, buckets: unit === "hour" ? stats.per_hour : stats.per_day };
    heading.textContent = `Received and delivered per ${unit}`;
    picture.setAttribute("aria-label", `Bars: events received and delivered per ${unit}. The same figures are in the table below.`);
    draw(now.buckets, unit);
    figures.show(now.buckets.toReversed().map((each) => figures.row(each.start, [label(each), count(each.received), count(each.delivered)])));
  }

  point(null);
  const element = el("section", { class: "card plot-card" },
    el("div", { class: "line apart" }, heading, el("p", { class: "legend", "aria-hidden": "true" }, legend.when, legend.received, legend.delivered)),
    picture,
    el("details", { class: "as-table" }, el("summary", {}, "Show as table"), figures.box));
  return { element, show };
}
