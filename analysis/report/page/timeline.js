// Bars one after another along an axis of time, a lane for each group. A colour stands for a name, which is in the bar where
// there is room, or, where bars have none, for a group.

function timeline(block, selection) {
  const { start, length, group, hover, key, name } = block.bars, all = [...start.keys()];
  const kinds = (block.names ?? block.groups).map((text) => ({ name: text })), kind = name ?? group;
  const colors = seriesColors(kinds), on = new Set(kinds.keys());
  const barTexts = (bars) => (name ? { text: bars.map((i) => plain(kinds[kind[i]].name)), ...inBar } : { textposition: 'none' });
  const trace = (bars, options) => ({ type: 'bar', orientation: 'h', y: bars.map((i) => group[i]), base: bars.map((i) => start[i]), x: bars.map((i) => length[i]), width: 0.8,
    customdata: bars.map((i) => key[i]), ...barTexts(bars), ...hoverText(bars.map((i) => hover[i])), ...options });
  const [element, redraw] = figure(block, () => ({
    traces: [...[...on].sort((a, b) => a - b).map((k) => trace(all.filter((i) => kind[i] === k),
      { name: plain(kinds[k].name), marker: { color: cssColor(colors[k]), line: { color: cssColor('paper'), width: name ? 0.5 : 0 } } })),
      trace(all.filter((i) => key[i] !== null && key[i] === selection.key), { name: 'selected', textposition: 'none', marker: { color: 'rgba(0,0,0,0)', line: { color: cssColor('ink'), width: 2.5 } } })],
    layout: baseLayout({ height: 90 + 34 * block.groups.length, barmode: 'overlay', uniformtext: inBarSize, margin: { l: 8, r: 12, t: isNarrow() ? 8 : 30, b: 44 },
      uirevision: 'zoom', xaxis: axis(block.unit), yaxis: nameAxis(block.groups) }) }), (redraw) => (name ? legend(kinds, colors, on, redraw) : null), selectKey(selection));
  addChart(selection, redraw, key, hover);
  return element;
}
