const BLUE = "#2186c4", VERMILION = "#d55e00", GREY = "rgba(128,128,128,";
const KERNELS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"];
const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false };
const data = JSON.parse(document.getElementById("report-data").textContent);
const $ = (id) => document.getElementById(id);
const dark = matchMedia("screen and (prefers-color-scheme: dark)"); // changes for printing as well
let output = 0;

// Text from data enters the page as text only.
const element = (tag, text, className) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
// Plotly reads markup and entities in its labels, and %{…} in its templates.
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const inTemplate = (text) => plain(text).replace(/%/g, "%%").replace(/\{/g, "(").replace(/\}/g, ")");
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const counted = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
const unit = () => data.units[output];
const withUnit = (text) => (unit() ? `${text} (${unit()})` : text);

async function loadPlotly() {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("charts need a browser of 2023 or later");
  }
  const bytes = Uint8Array.from(atob($("plotly-bundle").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
  if (typeof Plotly === "undefined") throw new Error("the chart library could not be started");
}

const axis = (more) => ({
  gridcolor: GREY + ".22)", linecolor: GREY + ".6)", zeroline: false, ticks: "outside", tickcolor: GREY + ".6)",
  ticklen: 4, fixedrange: true, automargin: true, nticks: 5, title: { standoff: 6 }, ...more,
});
const layout = (height, more) => ({
  height, margin: { l: 44, r: 18, t: 10, b: 36 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
  font: { family: "inherit", size: 12, color: "#555" }, showlegend: false, dragmode: false, hovermode: "closest",
  hoverlabel: { bgcolor: "#fff", bordercolor: "#888", font: { color: "#1c2126" } }, ...more,
});
const titled = (text, more) => axis({ ...more, title: { text: plain(text), standoff: 6 } });
const decoded = (spec) => new Float64Array(Uint8Array.from(atob(spec.bdata), (c) => c.charCodeAt(0)).buffer);
const floats = (spec) => (spec.dtype === "f8" ? decoded(spec) : new Float32Array(Uint8Array.from(atob(spec.bdata), (c) => c.charCodeAt(0)).buffer));
const bytesOf = (spec) => Uint8Array.from(atob(spec.bdata), (c) => c.charCodeAt(0));
const positions = (spec) => (Array.isArray(spec) ? spec : Array.from(decoded(spec))); // dates are texts

function drawImportance(found) {
  $("importance-card").hidden = !found || found.names.length === 0;
  if ($("importance-card").hidden) return;
  const names = found.names.map((name, i) => `${i}`);
  Plotly.react("chart-importance", [{
    type: "bar", orientation: "h", y: names, x: found.shares, marker: { color: BLUE },
    error_x: { type: "data", array: found.errors.map((error) => 2 * error), color: GREY + "1)", thickness: 1.2, width: 3 },
    text: found.shares.map((share) => ` ${share < 0.005 ? "<1" : Math.round(100 * share)} %`), textposition: "none",
    customdata: found.names.map(plain), hovertemplate: "%{customdata}: %{x:.1%}<extra></extra>",
  }], layout(46 + 26 * names.length, {
    margin: { l: 10, r: 60, t: 4, b: 30 }, bargap: 0.35,
    xaxis: axis({ tickformat: ".0%", range: [0, 1.12 * Math.max(...found.shares.map((share, i) => share + 2 * found.errors[i]), 0.01)], side: "bottom" }),
    yaxis: axis({ autorange: "reversed", type: "category", tickvals: names, ticktext: found.names.map((name) => plain(short(name, innerWidth < 600 ? 16 : 34))), nticks: 0, ticks: "", showgrid: false }),
    annotations: found.shares.map((share, i) => ({
      x: share + 2 * found.errors[i], y: names[i], text: share < 0.005 ? "under 1 %" : `${Math.round(100 * share)} %`, showarrow: false, xanchor: "left", xshift: 6, font: { size: 12 },
    })),
  }), CONFIG);
  $("importance-left").hidden = !found.left;
  $("importance-left").textContent = `${counted(found.left, "more column")} ${found.left === 1 ? "matters" : "matter"} less.`;
}

function drawCalibration(found) {
  if (!found) {
    ["chart-coverage", "chart-pit", "chart-scatter"].forEach((id) => Plotly.purge(id));
    return;
  }
  const levels = Array.from({ length: 51 }, (_, i) => i / 50);
  Plotly.react("chart-coverage", [
    { x: levels, y: found.band[0], mode: "lines", line: { width: 0 }, hoverinfo: "skip" },
    { x: levels, y: found.band[1], mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: GREY + ".25)", hoverinfo: "skip" },
    { x: [0, 1], y: [0, 1], mode: "lines", line: { color: GREY + ".9)", dash: "dash", width: 1 }, hoverinfo: "skip" },
    { x: levels, y: found.coverage, mode: "lines", line: { color: VERMILION, width: 2.5 }, hovertemplate: "%{x:.0%} intervals hold %{y:.1%}<extra></extra>" },
  ], layout(290, {
    xaxis: titled("what the interval promises", { range: [0, 1], dtick: 0.25, tickformat: ".0%" }),
    yaxis: titled("observations inside", { range: [0, 1], dtick: 0.25, tickformat: ".0%" }),
  }), CONFIG);
  const n = found.pit.length;
  const [low, high] = found.pitBand;
  Plotly.react("chart-pit", [
    { type: "bar", x: found.pit.map((_, i) => (i + 0.5) / n), y: found.pit, width: 1 / n, marker: { color: BLUE, opacity: 0.75, line: { color: BLUE, width: 1 } }, hovertemplate: "%{y:.2f} times as many as expected<extra></extra>" },
  ], layout(290, {
    bargap: 0, xaxis: titled("place within the prediction", { range: [0, 1], tickvals: [0.05, 0.5, 0.95], ticktext: ["lowest", "middle", "highest"] }),
    yaxis: titled("rows, 1 as expected", { rangemode: "tozero" }),
    shapes: [
      { type: "rect", x0: 0, x1: 1, y0: low, y1: high, fillcolor: GREY + ".25)", line: { width: 0 } },
      { type: "line", x0: 0, x1: 1, y0: 1, y1: 1, line: { color: GREY + ".9)", dash: "dash", width: 1 } },
    ],
  }), CONFIG);
  const [from, to] = found.span;
  const seen = decoded(found.observed), expected = decoded(found.predicted);
  const beyond = seen.filter((value, i) => Math.min(value, expected[i]) < from || Math.max(value, expected[i]) > to).length;
  Plotly.react("chart-scatter", [
    { x: expected, y: seen, mode: "markers", marker: { color: BLUE, size: 4, opacity: 0.55 }, hovertemplate: "predicted %{x:.4g}<br>observed %{y:.4g}<extra></extra>" },
  ], layout(290, {
    xaxis: titled(withUnit("predicted"), { range: found.span }), yaxis: titled(withUnit("observed"), { range: found.span }),
    shapes: [{ type: "line", layer: "below", x0: from, x1: to, y0: from, y1: to, line: { color: GREY + ".9)", dash: "dash", width: 1 } }],
    annotations: beyond ? [{ text: `${counted(beyond, "row")} beyond the axes`, showarrow: false, xref: "paper", yref: "paper", x: 0.02, y: 0.98, xanchor: "left", yanchor: "top" }] : [],
  }), CONFIG);
}
