function parameterTable({ parts, rows, left }) {
  const table = element("table");
  const line = (cells, tag) => {
    const row = element("tr");
    cells.forEach((text, i) => row.append(element(i ? tag : "th", text, i ? "number" : "")));
    return row;
  };
  const head = element("thead"), body = element("tbody");
  if (parts.length > 1) head.append(line(["", ...parts], "th"));
  rows.forEach((cells) => body.append(line(cells, "td")));
  table.append(head, body);
  const around = element("div", undefined, "table"), box = element("div", undefined, "scroll"), cue = element("p", "more columns to the right →", "cue");
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "Parameters");
  box.append(table);
  around.append(box, cue);
  watchScroll(box);
  return left.length ? [around, element("p", `${counted(left[0], "more column")} ${left[0] === 1 ? "matters" : "matter"} less.`, "note")] : [around];
}

function describeRegion(item) {
  const list = element("dl");
  const add = (name, value) => {
    list.append(element("dt", name), element("dd", value));
  };
  add("Training rows", item.rows.toLocaleString("en"));
  list.append(element("dt", "Where"));
  const box = element("dd");
  (item.box.length ? item.box : ["everywhere"]).forEach((side) => box.append(element("div", side)));
  list.append(box);
  if (!item.certain) add("Cut like this", `with probability ${item.weight}`);
  add("Noise", `${item.noiseText}, the scatter that columns do not explain`);
  add(data.heldOut ? "Held-out rows" : "Rows looked at", item.judged ? `${item.judged.toLocaleString("en")}, off by ${item.error} on average` : "none");
  const kernels = item.kernels.map((kernel, i) => {
    const details = element("details");
    details.open = i === 0;
    details.append(element("summary", kernel.summary));
    details.append(element("p", [kernel.meaning, kernel.noise, kernel.context].filter(Boolean).join(" "), "note"));
    if (kernel.parameters.rows.length) details.append(...parameterTable(kernel.parameters));
    return details;
  });
  const words = element("p", item.words, "words");
  const legend = element("p", "“Alike within 2 km”: two rows 2 km apart, and equal otherwise, are still about half alike. “Size” is how far a part moves predictions up and down.", "note");
  $("region-details").replaceChildren(words, list, element("h3", item.kernels.length > 1 ? "Kernels, largest share first" : "Kernel"), ...kernels, legend);
}

function drawResiduals(item) {
  Plotly.react("chart-residuals", [
    { x: item.predicted, y: item.residual, mode: "markers", marker: { color: BLUE, size: 5, opacity: 0.7 }, hovertemplate: "predicted %{x:.4g}<br>%{y:.2f} on the scale of a standard normal<extra></extra>" },
  ], layout(230, {
    xaxis: titled(withUnit("predicted"), {}), yaxis: titled("how unusual", { range: item.span, zeroline: true, zerolinecolor: GREY + ".8)" }),
    shapes: [{ type: "rect", layer: "below", xref: "paper", x0: 0, x1: 1, y0: -1.96, y1: 1.96, fillcolor: GREY + ".18)", line: { width: 0 } }],
    annotations: item.judged ? [] : [{ text: "no rows in this region", showarrow: false, xref: "paper", yref: "paper", x: 0.5, y: 0.5 }],
  }), CONFIG);
}

function drawRegions(all) {
  if (!all) return;
  const select = $("region"), alone = all.items.length === 1;
  ["region-choice", "chart-regions", "regions-note"].forEach((id) => { $(id).hidden = alone; });
  select.replaceChildren(...all.items.map((item, i) => {
    const option = element("option", `${i + 1}: ${counted(item.rows, "row")}${item.box.length ? ", " + item.box.join(", ") : ""}`);
    option.value = i;
    return option;
  }));
  const title = plain(all.unit ? `noise (${all.unit})` : "noise");
  const trace = (chosen) => ({
    type: "treemap", labels: all.items.map((_, i) => `${i + 1}`), parents: all.items.map(() => ""), ids: all.items.map((_, i) => `r${i}`),
    values: all.items.map((item) => item.size), text: all.items.map((item) => counted(item.rows, "row")),
    textinfo: "label+text", textposition: "middle center", branchvalues: "total", sort: false, tiling: { packing: "squarify", pad: 2 },
    hovertemplate: "region %{label}<br>%{text}<br>noise ±%{color:.3g}<extra></extra>", pathbar: { visible: false },
    marker: {
      colors: all.items.map((item) => item.noise), colorscale: "Cividis", pad: { t: 0, l: 0, r: 0, b: 0 }, cornerradius: 3, depthfade: false,
      line: { width: all.items.map((_, i) => (i === chosen ? 4 : 0)), color: VERMILION },
      colorbar: { title: { text: title, side: "top" }, orientation: "h", thickness: 12, y: -0.02, yanchor: "top", len: 0.9, nticks: 5 }, showscale: true,
    },
    root: { color: "rgba(0,0,0,0)" },
  });
  const shape = layout(430, { margin: { l: 2, r: 2, t: 2, b: 70 }, uniformtext: { minsize: 9, mode: "hide" } });
  const choose = (i) => {
    select.value = i;
    describeRegion(all.items[i]);
    drawResiduals(all.items[i]);
    if (!alone) Plotly.react("chart-regions", [trace(i)], shape, CONFIG);
  };
  if (alone) {
    Plotly.purge("chart-regions");
  } else {
    Plotly.newPlot("chart-regions", [trace(0)], shape, CONFIG);
    $("chart-regions").on("plotly_treemapclick", (event) => {
      const i = all.items.findIndex((_, k) => `r${k}` === event.points[0].id);
      if (i >= 0) choose(i);
      return false; // no zoom
    });
  }
  select.onchange = () => choose(Number(select.value));
  choose(0);
  $("regions-left").hidden = all.total === all.items.length;
  $("regions-left").textContent = `The ${all.items.length} largest of ${counted(all.total, "region")}.`;
}
