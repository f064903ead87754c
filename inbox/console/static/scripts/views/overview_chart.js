// Received and delivered as bars, drawn by uPlot in the colours of the page.

import { el } from "../dom.js";
import { count, dayOf, hourOf } from "../format.js";
import { table } from "../tables.js";

const HEIGHT_PX = 240;
const dark = matchMedia("(prefers-color-scheme: dark)");

// `holder` gets the plot. `onpoint` is told of the bucket under the pointer, or of null.
export function chart(holder, onpoint, signal) {
  let plot = null;
  let shown = null;

  const draw = () => {
    plot?.destroy();
    plot = shown && new globalThis.uPlot(options(holder, shown, onpoint), columns(shown.buckets), holder);
  };
  const resize = new ResizeObserver(() => plot?.setSize({ width: holder.clientWidth, height: HEIGHT_PX }));
  resize.observe(holder);
  dark.addEventListener("change", draw, { signal });
  signal.addEventListener("abort", () => {
    resize.disconnect();
    plot?.destroy();
  });

  return (buckets, unit) => {
    const sameShape = plot && shown.unit === unit && shown.buckets.length === buckets.length;
    if (sameShape) shown.buckets = buckets;
    else shown = { buckets, unit };
    if (sameShape) plot.setData(columns(buckets));
    else draw();
  };
}

function columns(buckets) {
  return [buckets.map((_, place) => place), buckets.map((each) => each.received), buckets.map((each) => each.delivered)];
}

function options(holder, shown, onpoint) {
  const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const label = shown.unit === "hour" ? hourOf : dayOf;
  const bars = (name, colour, align) => ({
    label: name, fill: colour, stroke: colour, width: 0, points: { show: false },
    paths: globalThis.uPlot.paths.bars({ size: [0.36, 22], align, radius: 0.25, gap: 1 }),
  });
  const axis = {
    stroke: token("--ink-faint"), font: `11px ${token("--sans")}`,
    grid: { stroke: token("--plot-grid"), width: 1 }, ticks: { show: false },
  };
  return {
    width: holder.clientWidth,
    height: HEIGHT_PX,
    padding: [8, 4, 0, 0],
    legend: { show: false },
    cursor: { x: true, y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: () => [-0.6, shown.buckets.length - 0.4] },
      // Room for a few events at least, so that one of them does not fill the plot.
      y: { range: (_plot, _least, most) => [0, Math.max(4, most * 1.1)] },
    },
    series: [{}, bars("Received", token("--plot-received"), -1), bars("Delivered", token("--plot-delivered"), 1)],
    axes: [
      { ...axis, grid: { show: false }, space: 52, size: 26, gap: 6, incrs: [1, 2, 3, 4, 6, 8, 12, 24],
        values: (_plot, places) => places.map((place) => (shown.buckets[place] ? label(shown.buckets[place].start) : "")) },
      { ...axis, size: 40, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7, 1e8, 1e9],
        values: (_plot, amounts) => amounts.map((amount) => SHORTENED.format(amount)) },
    ],
    hooks: { setCursor: [(plot) => onpoint(shown.buckets[plot.cursor.idx] ?? null)] },
  };
}

const SHORTENED = new Intl.NumberFormat("en-GB", { notation: "compact" });

// The plot, and the same as a table for those who cannot see it.

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
