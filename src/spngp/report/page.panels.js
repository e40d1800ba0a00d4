// Averages along a column, in pieces where no rows occur in between.
function pieces(step, keys) {
  const x = positions(step.x), values = keys.map((key) => Array.from(floats(step[key])));
  const edges = [0, ...step.breaks, x.length];
  return edges.slice(1).map((end, i) => ({ x: x.slice(edges[i], end), y: values.map((all) => all.slice(edges[i], end)) }));
}
const jittered = (places) => places.map((place, i) => place + 0.34 * (((i * 0.618034) % 1) - 0.5));

function columnAxis(item, at) {
  if (item.kind !== "levels") return titled(short(item.title, 34), { type: item.kind === "date" ? "date" : "linear", nticks: 5 });
  const places = Array.from(new Set(at)).sort((a, b) => a - b);
  const many = places.length > 8, every = Math.ceil(places.length / 18); // labels of some, if all would overlap
  const labelled = places.filter((_, i) => i % every === 0);
  return titled(short(item.title, 34), {
    tickvals: labelled, ticktext: labelled.map((place) => plain(short(item.levels[place] ?? `${place}`, 14))), nticks: 0,
    tickangle: many ? -60 : "auto", range: [places[0] - 0.6, places[places.length - 1] + 0.6],
  });
}

// A band as two lines with the space between them filled; bars where every group is one level.
function bandTraces(piece, low, high, colour, levels, width) {
  if (levels) {
    const x = piece.x.flatMap((place) => [place, place, null]);
    const y = piece.x.flatMap((_, i) => [low[i], high[i], null]);
    return [{ x, y, mode: "lines", line: { color: colour, width }, hoverinfo: "skip", connectgaps: false }];
  }
  return [
    { x: piece.x, y: low, mode: "lines", line: { width: 0 }, hoverinfo: "skip" },
    { x: piece.x, y: high, mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: colour, hoverinfo: "skip" },
  ];
}

function panelTraces(all, item, i) {
  const step = item.steps[i], levels = item.kind === "levels", bars = levels || step.distinct, traces = [];
  const width = Math.max(3, Math.min(10, 170 / positions(step.x).length));
  const chosen = bytesOf(all.inChoice[i]), x = positions(item.points), y = decoded(all.y);
  const kept = x.map((_, k) => k).filter((k) => chosen[k]);
  const shownX = kept.map((k) => x[k]);
  for (const piece of pieces(step, ["low", "high", "lower", "upper", "mean"])) {
    const [low, high, lower, upper, mean] = piece.y;
    traces.push(...bandTraces(piece, low, high, "rgba(33,134,196,.20)", bars, width), ...bandTraces(piece, lower, upper, "rgba(33,134,196,.38)", bars, width));
    const hover = levels
      ? { text: piece.x.map((place) => inTemplate(item.levels[place] ?? "")), hovertemplate: "%{text}: %{y:.4g}<br>95 %: %{customdata[0]:.4g} to %{customdata[1]:.4g}<extra></extra>" }
      : { hovertemplate: "predicted %{y:.4g}<br>95 %: %{customdata[0]:.4g} to %{customdata[1]:.4g}<extra></extra>" };
    traces.push({
      x: piece.x, y: mean, customdata: low.map((value, k) => [value, high[k]]), mode: levels ? "markers" : step.distinct ? "lines+markers" : "lines", line: { color: BLUE, width: bars ? 1 : 2.5 },
      marker: { color: BLUE, size: Math.min(9, width + 2) }, ...hover,
    });
  }
  traces.unshift({ x: levels ? jittered(shownX) : shownX, y: kept.map((k) => y[k]), mode: "markers", marker: { color: GREY + "1)", size: 3, opacity: 0.45 }, hoverinfo: "skip" });
  return traces;
}

function drawPanels(all) {
  if (!all) return Promise.resolve();
  const select = $("choice");
  const groups = new Map();
  all.choices.forEach((choice, i) => {
    const option = element("option", `${choice.label} (${choice.rows.toLocaleString("en")})`);
    option.value = i;
    if (!choice.by) return groups.set("", option);
    if (!groups.has(choice.by)) {
      const made = element("optgroup");
      made.label = `by ${choice.by}`;
      groups.set(choice.by, made);
    }
    return groups.get(choice.by).append(option);
  });
  select.replaceChildren(...groups.values());
  select.parentElement.hidden = all.choices.length < 2;
  const cards = all.items.map((item) => {
    const card = element("figure", undefined, "card");
    const caption = element("figcaption"), chart = element("div", undefined, "chart");
    const said = element("span");
    caption.append(element("h3", item.name), said);
    chart.setAttribute("role", "img");
    chart.setAttribute("aria-label", `Prediction along ${item.name}`);
    card.append(caption, chart);
    return { card, chart, said, item };
  });
  $("panel-cards").replaceChildren(...cards.map((made) => made.card));
  const drawCard = ({ chart, said, item }) => {
    const i = Number(select.value || 0), step = item.steps[i];
    if (!step) {
      said.textContent = "does not change in these rows";
      Plotly.purge(chart);
      chart.replaceChildren();
      return;
    }
    const left = step.left ? `; the ${positions(step.x).length} levels with most rows` : "";
    said.textContent = `on average from ${step.moves[0]} to ${step.moves[1]}${left}`;
    const wide = 0.06 * (step.span[1] - step.span[0]) || 1;
    const range = $("common").checked ? all.range : [step.span[0] - wide, step.span[1] + wide];
    Plotly.react(chart, panelTraces(all, item, i), layout(280, {
      margin: { l: 46, r: 10, t: 6, b: 40 }, xaxis: columnAxis(item, positions(step.x)), yaxis: titled(unit(), { range }),
    }), CONFIG);
  };
  const drawing = inTurn(cards, drawCard);
  select.onchange = drawing;
  $("common").onchange = drawing;
  $("panels-left").hidden = !all.left;
  $("panels-left").textContent = `${counted(all.left, "more column")} ${all.left === 1 ? "matters" : "matter"} less and ${all.left === 1 ? "is" : "are"} not shown.`;
  return drawing();
}

const waiting = new Set(); // what draws all cards that are still to be drawn at once, for printing

// Card by card, nearest to the eye first, with the page alive in between; given up when it is called again.
function inTurn(cards, drawCard) {
  let left = [];
  const distance = ({ card }) => Math.abs(card.getBoundingClientRect().top - 0.3 * innerHeight);
  waiting.add(() => {
    while (left.length) drawCard(left.shift());
  });
  return async (after) => {
    const mine = cards.map((each) => [distance(each), each]).sort((a, b) => a[0] - b[0]).map((pair) => pair[1]);
    left = mine;
    document.documentElement.dataset.drawn = "soon";
    if (after instanceof Promise) await after;
    while (left === mine && mine.length) {
      drawCard(mine.shift());
      await new Promise((resolve) => setTimeout(resolve));
    }
    if (left === mine) document.documentElement.dataset.drawn = "true";
  };
}

function drawCurve(found) {
  if (!found) return;
  $("curve-title").textContent = found.title;
  const line = (y, colour, width, name) => ({
    x: found.x, y, mode: "lines", line: { color: colour, width }, hovertemplate: `${name} %{y:.4g}<extra></extra>`,
  });
  const several = found.weights.length > 1, noise = found.noise !== null;
  const traces = [
    { type: "heatmap", x: found.x, y: found.levels, z: found.density, zmin: 0, zmax: 255, zsmooth: found.kind === "date" ? false : "best", showscale: false, hoverinfo: "skip",
      colorscale: [[0, GREY + "0)"], [1, GREY + ".85)"]] },
    line(found.low, VERMILION, 1.2, "2.5 %"), line(found.high, VERMILION, 1.2, "97.5 %"), line(found.mean, BLUE, 2.5, "predicted"),
    { x: found.rows, y: found.y, mode: "markers", marker: { color: dark.matches ? "#fff" : "#000", size: 4, opacity: 0.8 }, hoverinfo: "skip" },
  ];
  if (several) {
    found.weights.forEach((y, k) => traces.push({
      x: found.x, y, yaxis: "y2", mode: "lines", line: { width: 0, shape: "hvh" }, stackgroup: "kernels", fillcolor: KERNELS[k % KERNELS.length],
      hovertemplate: `${inTemplate(found.kernels[k])} %{y:.0%}<extra></extra>`,
    }));
  }
  if (noise) {
    traces.push({ x: found.x, y: found.noise, yaxis: "y3", mode: "lines", line: { color: VERMILION, width: 1.5, shape: "hvh" }, fill: "tozeroy",
      fillcolor: "rgba(213,94,0,.2)", hovertemplate: "noise ±%{y:.3g}<extra></extra>" });
  }
  const strip = (text, y) => ({ text, xref: "paper", yref: "paper", x: 0, y, xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 11 } });
  Plotly.react("chart-curve", traces, layout(540, {
    hovermode: "x", margin: { l: 52, r: 10, t: 6, b: 36 },
    xaxis: titled(found.title, { anchor: noise ? "y3" : "y", type: found.kind === "date" ? "date" : "linear" }),
    yaxis: titled(unit(), { domain: [several ? 0.4 : noise ? 0.3 : 0, 1], range: found.range }),
    ...(several ? { yaxis2: axis({ domain: [0.235, 0.325], range: [0, 1], showticklabels: false, ticks: "", showgrid: false, showline: false }) } : {}),
    ...(noise ? { yaxis3: axis({ domain: [0, several ? 0.16 : 0.18], range: [0, 1.15 * found.noiseTop], nticks: 3 }) } : {}),
    annotations: [...(several ? [strip("share of each kernel", 0.325)] : []), ...(noise ? [strip("noise", several ? 0.16 : 0.18)] : [])],
  }), CONFIG);
  dark.onchange = () => drawCurve(data.charts[output].curve); // points are black or white
  const legend = several ? found.kernels : [];
  $("kernel-legend").replaceChildren(...legend.map((name, k) => {
    const entry = element("span"), swatch = element("i");
    swatch.style.background = KERNELS[k % KERNELS.length];
    entry.append(swatch, name);
    return entry;
  }));
}

function drawResidualCards(all, after) {
  const errors = decoded(all.error);
  const cards = all.items.map((item) => {
    const card = element("figure", undefined, "card"), chart = element("div", undefined, "chart");
    const caption = element("figcaption");
    caption.append(element("h3", item.kind === "date" ? `over time: ${item.name}` : item.name));
    chart.setAttribute("role", "img");
    chart.setAttribute("aria-label", `Errors along ${item.name}`);
    card.append(caption, chart);
    return { card, chart, item };
  });
  $("residual-cards").replaceChildren(...cards.map((made) => made.card));
  return inTurn(cards, ({ chart, item }) => {
    const levels = item.kind === "levels", bars = levels || item.distinct, x = positions(item.points);
    const width = Math.max(3, Math.min(8, 170 / positions(item.x).length));
    const traces = [{ x: levels ? jittered(x) : x, y: errors, mode: "markers", marker: { color: GREY + "1)", size: 3.5, opacity: 0.5 }, hovertemplate: "off by %{y:.4g}<extra></extra>" }];
    for (const piece of pieces(item, ["low", "high", "mean"])) {
      traces.push(...bandTraces(piece, piece.y[0], piece.y[1], "rgba(33,134,196,.3)", bars, width));
      traces.push({ x: piece.x, y: piece.y[2], mode: bars ? "markers" : "lines", marker: { color: BLUE, size: width }, line: { color: BLUE, width: 2 }, hovertemplate: "on average %{y:.4g}<extra></extra>" });
    }
    Plotly.react(chart, traces, layout(220, {
      margin: { l: 46, r: 10, t: 6, b: 40 }, xaxis: columnAxis(item, positions(item.x)),
      yaxis: titled(unit(), { range: all.span, zeroline: true, zerolinecolor: VERMILION, zerolinewidth: 1 }),
    }), CONFIG);
  })(after);
}
