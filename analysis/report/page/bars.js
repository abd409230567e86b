// Horizontal bars: of each name one a series, next to each other or stacked, in which case negative ones go to the left.

function barChart(block, isStacked) {
  const on = new Set(block.series.keys()), colors = seriesColors(block.series), places = [...block.labels.keys()];
  const trace = (series, i) => ({ type: 'bar', orientation: 'h', name: plain(series.name), y: places, x: series.values, textposition: 'none', ...seriesHover(series, block.labels, series.values, block.unit),
    marker: { color: cssColor(colors[i]), line: { color: cssColor('paper'), width: isStacked ? 0.5 : 0 } }, error_x: intervals(series, series.values) });
  const rowHeight = isStacked ? 34 : 22 + 6 * block.series.length;
  return figure(block, () => ({ traces: block.series.map(trace).filter((_, i) => on.has(i)),
    layout: baseLayout({ height: 68 + rowHeight * block.labels.length, barmode: isStacked ? 'relative' : 'group', bargap: 0.28,
      xaxis: axis(block.unit), yaxis: nameAxis(block.labels) }) }), (redraw) => legend(block.series, colors, on, redraw))[0];
}

