// Horizontal bars: of each name one a series, next to each other or stacked, in which case negative ones go to the left.
// A part of a stack has its value in it, in the first bar also its name, where there is room.

function barChart(block, isStacked) {
  const on = new Set(block.series.keys()), colors = seriesColors(block.series), places = [...block.labels.keys()];
  const longest = Math.max(...block.labels.map((_, at) => block.series.reduce((sum, one) => sum + Math.max(0, one.values[at] ?? 0), 0)));
  const partText = (name) => (value, at) => {
    if (!(value > 0)) return '';
    const number = String(Number(value.toPrecision(block.digits))), room = 0.7 * document.querySelector('main').clientWidth * value / longest;
    return at === 0 && 6.5 * (name.length + number.length + 1) < room ? `${plain(name)} ${number}` : number;
  };
  const partTexts = (series) => ({ text: series.values.map(partText(series.name)), ...inBar });
  const trace = (series, i) => ({ type: 'bar', orientation: 'h', name: plain(series.name), y: places, x: series.values, ...(isStacked ? partTexts(series) : { textposition: 'none' }), ...seriesHover(series, block.labels, series.values, block.unit),
    marker: { color: cssColor(colors[i]), line: { color: cssColor('paper'), width: isStacked ? 0.5 : 0 } }, error_x: intervals(series, series.values) });
  const rowHeight = isStacked ? 34 : 22 + 6 * block.series.length;
  return figure(block, () => ({ traces: block.series.map(trace).filter((_, i) => on.has(i)),
    layout: baseLayout({ height: 68 + rowHeight * block.labels.length, barmode: isStacked ? 'relative' : 'group', bargap: 0.28, uniformtext: inBarSize,
      xaxis: axis(block.unit), yaxis: nameAxis(block.labels) }) }), (redraw) => legend(block.series, colors, on, redraw))[0];
}

