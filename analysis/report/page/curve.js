// Curves: a line with markers a series, over numbers or over names, with the intervals of its points.

const markSymbols = ['circle', 'square', 'triangle-up', 'circle-open', 'diamond'];

function valueAxis({ title, log, zero }) {
  return axis(title, log ? { type: 'log', dtick: 1, minor: { dtick: 'D1' } } : zero ? { rangemode: 'tozero' } : {});
}

/** Numbers on a log scale have a tick each while they are few; names keep their order. */
function curveAxis(spec, values) {
  if (values.some((value) => typeof value === 'string')) return axis(spec.title, { type: 'category', categoryorder: 'array', categoryarray: values });
  return { ...valueAxis(spec), ...(spec.log && values.length <= 12 ? { tickvals: values, ticktext: values.map(String), minor: {} } : {}) };
}

function curve(block) {
  const on = new Set(block.series.keys()), colors = seriesColors(block.series), values = [...new Set(block.series.flatMap((series) => series.x))];
  const isDense = block.series.some((series) => series.x.length > 40);
  const trace = (series, i) => ({ x: series.x, y: series.y, name: plain(series.name), mode: 'lines+markers', ...seriesHover(series, series.x, series.y, ''),
    marker: { size: isDense ? 4 : 8, symbol: series.shape?.map((shape) => markSymbols[shape % markSymbols.length]) },
    line: { color: cssColor(colors[i]), width: isDense ? 1.5 : 2, shape: block.steps ? 'hv' : 'linear' }, error_y: intervals(series, series.y) });
  return figure(block, () => ({ traces: block.series.map(trace).filter((_, i) => on.has(i)),
    layout: baseLayout({ height: 270, xaxis: curveAxis(block.x, values), yaxis: valueAxis(block.y) }) }),
  (redraw) => legend(block.series, colors, on, redraw))[0];
}
