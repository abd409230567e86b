// Bars one after another along an axis of time, a lane for each group.

function timeline(block, selection) {
  const { start, length, group, hover, key } = block.bars, all = [...start.keys()];
  const trace = (bars, options) => ({ type: 'bar', orientation: 'h', y: bars.map((i) => group[i]), base: bars.map((i) => start[i]), x: bars.map((i) => length[i]), width: 0.8,
    customdata: bars.map((i) => key[i]), textposition: 'none', ...hoverText(bars.map((i) => hover[i])), ...options });
  const [element, redraw] = figure(block, () => ({
    traces: [...block.groups.map((name, lane) => trace(all.filter((i) => group[i] === lane), { name: plain(name), marker: { color: cssColor(color(lane)) } })),
      trace(all.filter((i) => key[i] !== null && key[i] === selection.key), { name: 'selected', marker: { color: 'rgba(0,0,0,0)', line: { color: cssColor('ink'), width: 2.5 } } })],
    layout: baseLayout({ height: 90 + 34 * block.groups.length, barmode: 'overlay', margin: { l: 8, r: 12, t: isNarrow() ? 8 : 30, b: 44 },
      uirevision: 'zoom', xaxis: axis(block.unit), yaxis: nameAxis(block.groups) }) }), () => null, selectKey(selection));
  addChart(selection, redraw, key, hover);
  return element;
}
