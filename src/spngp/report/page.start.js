async function drawAll() {
  const charts = data.charts[output];
  document.documentElement.dataset.ready = "soon";
  waiting.clear();
  document.querySelectorAll("[data-output]").forEach((part) => { part.hidden = Number(part.dataset.output) !== output; });
  drawImportance(charts.importance);
  drawCalibration(charts.calibration);
  drawRegions(charts.regions);
  drawCurve(charts.curve);
  const panels = drawPanels(charts.panels);
  await drawResidualCards(charts.residuals, panels);
  document.documentElement.dataset.ready = "true";
}

wireTables();
addEventListener("beforeprint", () => {
  waiting.forEach((finish) => finish());
  document.querySelectorAll(".js-plotly-plot").forEach((chart) => {
    chart.style.height ||= `${chart.offsetHeight}px`; // a resize forgets the height of a layout, and the map would be gone
    Plotly.Plots.resize(chart);
  });
});
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
