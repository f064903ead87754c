// The chart of received and delivered events, drawn by uPlot, with the same figures as an accessible table.

import { el } from "../dom.js";
import { formatCount, formatTime } from "../format.js";
import { table } from "../tables.js";

const HEIGHT_PX = 240;
const formatCompact = new Intl.NumberFormat("en-GB", { notation: "compact" }).format;
const darkScheme = matchMedia("(prefers-color-scheme: dark)");

export function chartCard(signal) {
  const holder = el("div", { class: "plot" });
  const image = el("div", { role: "img" }, holder);
  const legend = { received: el("span", { class: "received" }), delivered: el("span", { class: "delivered" }), when: el("span", {}) };
  const figures = table("Received and delivered", [{ label: "From" }, { label: "Received", kind: "number" }, { label: "Delivered", kind: "number" }], { cards: false });
  const heading = el("h3", {}, "Received and delivered");
  const shown = { buckets: [], unit: "hour" };
  let plot = null;

  function label({ start }) {
    return shown.unit === "hour" ? formatTime(start, "hour") : `${formatTime(start, "utcDay")} (UTC)`;
  }

  function showBucket(bucket) {
    legend.received.textContent = bucket ? `Received ${formatCount(bucket.received)}` : "Received";
    legend.delivered.textContent = bucket ? `Delivered ${formatCount(bucket.delivered)}` : "Delivered";
    legend.when.textContent = bucket ? label(bucket) : "";
    legend.when.hidden = !bucket;
  }

  function show(stats) {
    const unit = stats.window === "24h" ? "hour" : "day";
    const buckets = unit === "hour" ? stats.per_hour : stats.per_day;
    heading.textContent = `Received and delivered per ${unit}`;
    image.setAttribute("aria-label", `Bar chart of events received and delivered per ${unit}. The table below shows the same figures.`);
    Object.assign(shown, { buckets, unit });
    if (plot) plot.setData(columns(buckets));
    else draw();
    figures.show(buckets.toReversed().map((each) => figures.row(each.start, [label(each), formatCount(each.received), formatCount(each.delivered)])));
  }

  function draw() {
    plot?.destroy();
    plot = new globalThis.uPlot(chartOptions(holder, shown, showBucket), columns(shown.buckets), holder);
  }
  const resize = new ResizeObserver(() => plot?.setSize({ width: holder.clientWidth, height: HEIGHT_PX }));
  resize.observe(holder);
  darkScheme.addEventListener("change", () => plot && draw(), { signal });
  signal.addEventListener("abort", () => {
    resize.disconnect();
    plot?.destroy();
  });

  showBucket(null);
  const element = el("section", { class: "card plot-card" },
    el("div", { class: "line apart" }, heading, el("p", { class: "legend", "aria-hidden": "true" }, legend.when, legend.received, legend.delivered)),
    image,
    el("details", { class: "as-table" }, el("summary", {}, "Show as table"), figures.box));
  return { element, show };
}

function columns(buckets) {
  return [buckets.map((_, index) => index), buckets.map((each) => each.received), buckets.map((each) => each.delivered)];
}

// Returns uPlot's options. Calls `onhover` with the bucket under the pointer, or null.
function chartOptions(holder, shown, onhover) {
  // A canvas needs the color for the current scheme, and only standard properties are resolved to it.
  const color = (token) => {
    holder.style.color = `var(${token})`;
    return getComputedStyle(holder).color;
  };
  const label = ({ start }) => formatTime(start, shown.unit === "hour" ? "hour" : "utcDay");
  const bars = (name, fill, align) => ({
    label: name, fill, stroke: fill, width: 0, points: { show: false },
    paths: globalThis.uPlot.paths.bars({ size: [0.36, 22], align, radius: 0.25, gap: 1 }),
  });
  const axis = {
    stroke: color("--ink-faint"), font: `11px ${getComputedStyle(holder).fontFamily}`,
    grid: { stroke: color("--quiet-soft"), width: 1 }, ticks: { show: false },
  };
  return {
    width: holder.clientWidth,
    height: HEIGHT_PX,
    padding: [8, 4, 0, 0],
    legend: { show: false },
    cursor: { x: true, y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: () => [-0.6, shown.buckets.length - 0.4] },
      // With a minimum of 4, a single event does not fill the chart.
      y: { range: (_plot, _min, max) => [0, Math.max(4, max * 1.1)] },
    },
    series: [{}, bars("Received", color("--plot-received"), -1), bars("Delivered", color("--plot-delivered"), 1)],
    axes: [
      { ...axis, grid: { show: false }, space: 52, size: 26, gap: 6, incrs: [1, 2, 3, 4, 6, 8, 12, 24],
        values: (_plot, indexes) => indexes.map((index) => (shown.buckets[index] ? label(shown.buckets[index]) : "")) },
      { ...axis, size: 40, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7, 1e8, 1e9],
        values: (_plot, amounts) => amounts.map(formatCompact) },
    ],
    hooks: { setCursor: [(plot) => onhover(shown.buckets[plot.cursor.idx] ?? null)] },
  };
}
