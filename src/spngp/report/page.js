"use strict";
(() => {
  const BLUE = "#2186c4", VERMILION = "#d55e00", GREY = "rgba(128,128,128,";
  const KERNELS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"];
  const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false };
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const $ = (id) => document.getElementById(id);
  const dark = matchMedia("screen and (prefers-color-scheme: dark)"); // changes for printing as well
  let output = 0, turn = 0;

  // Text from data enters the page as text only.
  const element = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  // Plotly reads markup and entities in its labels.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  const counted = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;

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
  const titled = (text, more) => axis({ ...more, title: { text, standoff: 6 } });

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
      xaxis: titled("probability of the interval", { range: [0, 1], dtick: 0.25, tickformat: ".0%" }),
      yaxis: titled("observations inside", { range: [0, 1], dtick: 0.25, tickformat: ".0%" }),
    }), CONFIG);
    const n = found.pit.length;
    const [low, high] = found.pitBand;
    Plotly.react("chart-pit", [
      { type: "bar", x: found.pit.map((_, i) => (i + 0.5) / n), y: found.pit, width: 1 / n, marker: { color: BLUE, opacity: 0.75, line: { color: BLUE, width: 1 } }, hovertemplate: "%{y:.2f} of what is expected<extra></extra>" },
    ], layout(290, {
      bargap: 0, xaxis: titled("predictive cdf at the observation", { range: [0, 1] }),
      yaxis: titled("rows, relative to flat", { rangemode: "tozero" }),
      shapes: [
        { type: "rect", x0: 0, x1: 1, y0: low, y1: high, fillcolor: GREY + ".25)", line: { width: 0 } },
        { type: "line", x0: 0, x1: 1, y0: 1, y1: 1, line: { color: GREY + ".9)", dash: "dash", width: 1 } },
      ],
    }), CONFIG);
    Plotly.react("chart-scatter", [
      { x: found.predicted, y: found.observed, mode: "markers", marker: { color: BLUE, size: 4, opacity: 0.55 }, hovertemplate: "predicted %{x:.4g}<br>observed %{y:.4g}<extra></extra>" },
    ], layout(290, {
      xaxis: titled("predicted", {}), yaxis: titled("observed", {}),
      shapes: [{ type: "line", layer: "below", xref: "x", yref: "y", ...diagonal(found), line: { color: GREY + ".9)", dash: "dash", width: 1 } }],
    }), CONFIG);
  }
  const decoded = (spec) => new Float64Array(Uint8Array.from(atob(spec.bdata), (c) => c.charCodeAt(0)).buffer);
  function diagonal(found) {
    const values = [...decoded(found.observed), ...decoded(found.predicted)];
    const low = Math.min(...values), high = Math.max(...values);
    return { x0: low, x1: high, y0: low, y1: high };
  }

  function sliceTraces(all, item, i) {
    const step = item.steps[i];
    const line = (y, colour, width, name) => ({
      x: item.x, y, mode: "lines", line: { color: colour, width }, hovertemplate: `${name} %{y:.4g}<extra></extra>`,
    });
    const traces = [
      { type: "heatmap", x: item.x, y: all.levels, z: step.density, zmin: 0, zmax: 255, zsmooth: "best", showscale: false, hoverinfo: "skip",
        colorscale: [[0, GREY + "0)"], [1, GREY + ".85)"]] },
      line(step.low, VERMILION, 1.2, "2.5 %"), line(step.high, VERMILION, 1.2, "97.5 %"), line(step.mean, BLUE, 2.5, "mean"),
    ];
    if (all.y) {
      traces.push({ x: item.rows, y: all.y, mode: "markers", marker: { color: dark.matches ? "#fff" : "#000", size: 4, opacity: 0.8 }, hoverinfo: "skip" });
    } else {
      const n = decoded(item.rows).length;
      traces.push({ x: item.rows, y: Array(n).fill(all.range[0]), mode: "markers", cliponaxis: false, hoverinfo: "skip",
        marker: { symbol: "line-ns-open", size: 9, line: { width: 1 }, color: GREY + ".6)" } });
    }
    if (step.weights.length > 1) {
      step.weights.forEach((y, k) => traces.push({
        x: item.x, y, yaxis: "y2", mode: "lines", line: { width: 0, shape: "hvh" }, stackgroup: "kernels", fillcolor: KERNELS[k % KERNELS.length],
        hovertemplate: `${plain(data.kernels[k]).replace(/%/g, "%%")} %{y:.0%}<extra></extra>`,
      }));
    }
    traces.push({ x: item.x, y: step.noise, yaxis: "y3", mode: "lines", line: { color: VERMILION, width: 1.5, shape: "hvh" }, fill: "tozeroy",
      fillcolor: "rgba(213,94,0,.2)", hovertemplate: "noise %{y:.3g}<extra></extra>" });
    return traces;
  }

  const strip = (text, y) => ({ text, xref: "paper", yref: "paper", x: 0, y, xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 10 } });

  function sliceLayout(all, item) {
    const several = item.steps[0].weights.length > 1;
    return layout(all.items.length === 1 ? 520 : 350, {
      hovermode: "x", margin: { l: 52, r: 10, t: 6, b: 28 },
      xaxis: axis({ anchor: "y3", range: item.range }),
      yaxis: axis({ domain: [several ? 0.4 : 0.3, 1], range: all.range }),
      ...(several ? { yaxis2: axis({ domain: [0.235, 0.325], range: [0, 1], showticklabels: false, ticks: "", showgrid: false, showline: false }) } : {}),
      yaxis3: axis({ domain: [0, several ? 0.16 : 0.18], range: [0, 1.15 * item.noiseTop], nticks: 3 }),
      annotations: [...(several ? [strip("kernel weights", 0.325)] : []), strip("noise", several ? 0.16 : 0.18)],
    });
  }

  function describeSlider(all, i) {
    const q = all.quantiles[i];
    const text = q === 50 ? "50 % quantile (median)" : `${q} % quantile`;
    $("slider-value").textContent = text;
    $("slider").setAttribute("aria-valuetext", text);
  }

  function drawSlices(all) {
    const several = all.quantiles.length > 1;
    $("slider-control").hidden = !several;
    const start = Math.floor(all.quantiles.length / 2);
    $("slider").max = all.quantiles.length - 1;
    $("slider").value = start;
    $("slider-marks").replaceChildren(...all.quantiles.map((q, i) => {
      const mark = element("option");
      mark.value = i;
      mark.label = `${q} %`;
      return mark;
    }));
    describeSlider(all, start);
    const cards = all.items.map((item) => {
      const card = element("figure", undefined, "card");
      const caption = element("figcaption");
      caption.append(element("h3", item.input));
      caption.append(element("span", `moves the mean by ${several ? "up to " : ""}${item.effect}`));
      const others = element("span", several ? `at ${item.others[start]}` : "", "others");
      caption.append(others);
      const chart = element("div", undefined, "chart");
      chart.setAttribute("role", "img");
      chart.setAttribute("aria-label", `Prediction along ${item.input}`);
      card.append(caption, chart);
      return { card, chart, others, item };
    });
    $("slice-cards").replaceChildren(...cards.map((made) => made.card));
    $("slice-cards").classList.toggle("one", cards.length === 1);
    const drawCard = ({ chart, others, item }, i) => {
      others.textContent = several ? `at ${item.others[i]}` : "";
      others.title = others.textContent;
      Plotly.react(chart, sliceTraces(all, item, i), sliceLayout(all, item), CONFIG);
    };
    const distance = ({ card }) => Math.abs(card.getBoundingClientRect().top - 0.3 * innerHeight);
    // Card by card, nearest to the eye first, with the page alive in between; given up when the slider has moved on.
    const draw = async (i) => {
      const mine = ++turn;
      for (const made of cards.map((made) => [distance(made), made]).sort((a, b) => a[0] - b[0]).map((pair) => pair[1])) {
        if (mine !== turn) return;
        drawCard(made, i);
        await new Promise((resolve) => setTimeout(resolve));
      }
    };
    $("slider").oninput = (event) => {
      const i = Number(event.target.value);
      describeSlider(all, i);
      draw(i);
    };
    dark.onchange = () => { if (all.y) cards.forEach((made) => drawCard(made, start)); }; // points are black or white
    $("slices-left").hidden = !all.left;
    $("slices-left").textContent = all.left === 1 ? "1 more input has less effect and is not shown." : `${all.left} more inputs have less effect and are not shown.`;
    const legend = data.kernels.length > 1 ? data.kernels : [];
    $("kernel-legend").replaceChildren(...legend.map((name, k) => {
      const entry = element("span");
      const swatch = element("i");
      swatch.style.background = KERNELS[k % KERNELS.length];
      entry.append(swatch, name);
      return entry;
    }));
    return draw(start);
  }

  function parameterTable({ parts, rows }) {
    const table = element("table");
    const line = (cells, tag) => {
      const row = element("tr");
      cells.forEach((text, i) => row.append(element(i ? tag : "th", text, i ? "number" : "")));
      return row;
    };
    const head = element("thead"), body = element("tbody");
    head.append(line(["parameter", ...parts], "th"));
    rows.forEach((cells) => body.append(line(cells, "td")));
    table.append(head, body);
    const box = element("div", undefined, "scroll");
    box.append(table);
    return box;
  }

  function describeRegion(item) {
    const list = element("dl");
    const add = (name, value) => {
      list.append(element("dt", name), element("dd", value));
    };
    add("Training rows", item.rows.toLocaleString("en"));
    add("In use with", `${item.weight} of the model’s belief`);
    add("Log evidence", `${item.evidenceText} per row`);
    add("Noise", `${item.noise} (standard deviation)`);
    add(data.heldOut ? "Held-out rows" : "Rows looked at", item.judged ? `${item.judged.toLocaleString("en")}, RMSE ${item.rmse}` : "none");
    list.append(element("dt", "Box"));
    const box = element("dd");
    (item.box.length ? item.box : ["everywhere"]).forEach((side) => box.append(element("div", side)));
    list.append(box);
    const experts = item.experts.map((expert, i) => {
      const details = element("details");
      details.open = i === 0;
      details.append(element("summary", `${expert.kernel}: ${expert.share} here, noise ${expert.noise}`));
      details.append(element("p", `Log evidence ${expert.evidence}; sees ${expert.context} beyond the border.`, "note"));
      details.append(parameterTable(expert.parameters));
      return details;
    });
    $("region-details").replaceChildren(list, element("h3", item.experts.length > 1 ? "Experts, most plausible first" : "Expert"), ...experts);
  }

  function drawResiduals(item) {
    Plotly.react("chart-residuals", [
      { x: item.predicted, y: item.residual, mode: "markers", marker: { color: BLUE, size: 5, opacity: 0.7 }, hovertemplate: "predicted %{x:.4g}<br>off by %{y:.2f} std<extra></extra>" },
    ], layout(230, {
      xaxis: titled("predicted", {}), yaxis: titled("residual / std", { range: item.span, zeroline: true, zerolinecolor: GREY + ".8)" }),
      shapes: [{ type: "rect", layer: "below", xref: "paper", x0: 0, x1: 1, y0: -1.96, y1: 1.96, fillcolor: GREY + ".18)", line: { width: 0 } }],
      annotations: item.judged ? [] : [{ text: "no rows in this region", showarrow: false, xref: "paper", yref: "paper", x: 0.5, y: 0.5 }],
    }), CONFIG);
  }

  function drawRegions(all) {
    const select = $("region");
    select.replaceChildren(...all.items.map((item, i) => {
      const option = element("option", `${i + 1}: ${counted(item.rows, "row")}${item.box.length ? ", " + item.box.join(", ") : ""}`);
      option.value = i;
      return option;
    }));
    const colours = all.items.map((item) => item.evidence);
    const trace = (chosen) => ({
      type: "treemap", labels: all.items.map((_, i) => `${i + 1}`), parents: all.items.map(() => ""), ids: all.items.map((_, i) => `r${i}`),
      values: all.items.map((item) => item.size), text: all.items.map((item) => counted(item.rows, "row")),
      textinfo: "label+text", textposition: "middle center", branchvalues: "total", sort: false, tiling: { packing: "squarify", pad: 2 },
      hovertemplate: "region %{label}<br>%{text}<br>%{color:.3f} nats per row<extra></extra>", pathbar: { visible: false },
      marker: {
        colors: colours, colorscale: "Cividis", pad: { t: 0, l: 0, r: 0, b: 0 }, cornerradius: 3, depthfade: false,
        line: { width: all.items.map((_, i) => (i === chosen ? 4 : 0)), color: VERMILION },
        colorbar: { title: { text: "log evidence<br>per row (nats)", side: "top" }, orientation: "h", thickness: 12, y: -0.02, yanchor: "top", len: 0.9, nticks: 5 }, showscale: true,
      },
      root: { color: "rgba(0,0,0,0)" },
    });
    const shape = layout(430, { margin: { l: 2, r: 2, t: 2, b: 70 }, uniformtext: { minsize: 9, mode: "hide" } });
    const choose = (i) => {
      select.value = i;
      describeRegion(all.items[i]);
      drawResiduals(all.items[i]);
      Plotly.react("chart-regions", [trace(i)], shape, CONFIG);
    };
    Plotly.newPlot("chart-regions", [trace(0)], shape, CONFIG);
    $("chart-regions").on("plotly_treemapclick", (event) => {
      const i = all.items.findIndex((_, k) => `r${k}` === event.points[0].id);
      if (i >= 0) choose(i);
      return false; // no zoom
    });
    select.onchange = () => choose(Number(select.value));
    choose(0);
    $("regions-left").hidden = all.total === all.items.length;
    $("regions-left").textContent = `The ${all.items.length} largest of ${counted(all.total, "region")}.`;
  }

  async function drawAll() {
    const charts = data.charts[output];
    document.documentElement.dataset.ready = "soon";
    drawCalibration(charts.calibration);
    drawRegions(charts.regions);
    document.querySelectorAll("[data-output]").forEach((part) => { part.hidden = Number(part.dataset.output) !== output; });
    await drawSlices(charts.slices);
    document.documentElement.dataset.ready = "true";
  }

  loadPlotly().then(async () => {
    if ($("output")) {
      $("output").onchange = (event) => {
        output = Number(event.target.value);
        drawAll();
      };
    }
    await drawAll();
  }).catch((error) => {
    $("notice").hidden = false;
    $("notice").textContent = `The charts cannot be shown (${error.message}). The tables are complete.`;
    document.documentElement.dataset.ready = "failed";
    throw error;
  });
})();
