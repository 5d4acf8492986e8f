// Lines that live (uPlot, loaded only where a page has a chart). Colours come from the style sheet and follow the theme.
import { grouped, written } from "./formats.js";
import { once } from "./once.js";
import { listen } from "./stream.js";

// Between ticks of counts: nobody counts half a request.
const WHOLE_STEPS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

export function start(root) {
  for (const element of once(root, "[data-chart]", "chart")) begin(element);
}

async function begin(element) {
  const series = JSON.parse(element.dataset.series);
  try {
    const [{ default: Plot }, history] = await Promise.all([
      import("../vendor/uplot/uPlot.esm.js"),
      fetch(element.dataset.source, { headers: { Accept: "application/json" } }).then((answer) => {
        if (!answer.ok) throw new Error(`answered ${answer.status}`);
        return answer.json();
      }),
    ]);
    new LiveChart(Plot, element, series, history);
  } catch (problem) {
    element.textContent = "";
    const text = document.createElement("p");
    text.className = "chart-problem";
    text.textContent = `The samples could not be read (${problem.message}). The table has those of when the page was made.`;
    element.append(text);
  }
}

class LiveChart {
  constructor(Plot, element, series, history) {
    this.Plot = Plot;
    this.element = element;
    this.series = series;
    this.span = Number(element.dataset.span);
    this.rows = [history.at, ...series.map(({ key }) => history.series[key] ?? history.at.map(() => null))];
    this.draw();
    document.addEventListener("roundhouse:theme", () => element.isConnected && this.draw());
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(element);
    if (element.dataset.stream) listen(element.dataset.stream, element, (sample) => this.add(sample));
  }

  size() {
    return { width: this.element.clientWidth, height: Number(this.element.dataset.height) };
  }

  draw() {
    this.plot?.destroy();
    const text = colour(this.element, "muted");
    const line = colour(this.element, "line-colour");
    const axis = { stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 }, font: font(this.element) };
    const { kind } = this.series[0];
    this.plot = new this.Plot(
      {
        ...this.size(),
        cursor: { y: false, points: { size: 6 } },
        scales: {
          x: { time: true, range: (plot, least, most) => [(most ?? Date.now() / 1000) - this.span, most ?? Date.now() / 1000] },
          y: { range: (plot, least, most) => [Math.min(0, least ?? 0), (most || 1) * 1.1] },
        },
        axes: [
          { ...axis, size: 28, space: 64, values: (plot, ticks, index, space, step) => ticks.map((tick) => clock(tick, step < 60)) },
          { ...axis, size: 56, ...(kind === "count" ? { incrs: WHOLE_STEPS } : {}), values: (plot, ticks, index, space, step) => ticks.map((tick) => onAxis(kind, tick, step)) },
        ],
        series: [
          { label: "time", value: (plot, at, row, index) => shown(this.told(at, row, index), (moment) => clock(moment, true)) },
          ...this.series.map(({ label, unit, kind: own, dash }, index) => ({
            label,
            stroke: colour(this.element, `series-${(index % 4) + 1}`),
            width: 1.5,
            dash: dash ? [6, 4] : undefined,
            points: { show: false },
            value: (plot, value, row, index) => shown(this.told(value, row, index), (found) => `${written(own, found)}${unit ? ` ${unit}` : ""}`),
          })),
        ],
      },
      this.rows,
      this.element,
    );
  }

  // What the legend tells: the value under the pointer, and the latest while it is elsewhere.
  told(value, row, index) {
    return index === null || index === undefined ? this.rows[row].at(-1) : value;
  }

  add({ at, values }) {
    const [times] = this.rows;
    if (times.length && at <= times[times.length - 1]) return;
    times.push(at);
    this.series.forEach(({ key }, index) => this.rows[index + 1].push(values[key] ?? null));
    const first = times.findIndex((each) => each >= at - this.span);
    if (first > 0) for (const row of this.rows) row.splice(0, first);
    this.plot.setData(this.rows);
  }
}

function shown(value, write) {
  return value === null || value === undefined ? "—" : write(value);
}

function clock(at, seconds) {
  const options = { hour: "2-digit", minute: "2-digit", second: seconds ? "2-digit" : undefined, hourCycle: "h23" };
  return new Date(at * 1000).toLocaleTimeString("en-GB", options);
}

// Ticks are all written alike, with the digits that tell one from the next.
function onAxis(kind, tick, step) {
  if (kind !== undefined && kind !== "number" && kind !== "count") return written(kind, tick);
  let digits = 0;
  while (digits < 9 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1;
  return grouped(tick, digits);
}

// The style sheet knows the colour of either theme; an element that wears the class tells it.
function colour(element, name) {
  const probe = document.createElement("span");
  probe.className = name;
  element.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function font(element) {
  return `11px ${getComputedStyle(element).fontFamily}`;
}
