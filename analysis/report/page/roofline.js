// The roofline: performance against arithmetic intensity on log scales, roofs as lines, and marks, of which the groups
// (colours), the shapes, the layers and the views are switched. What a filter takes away leaves the tables too.

const shapeSigns = ['● ', '■ ', '▲ ', '○ ', '◆ '];

function withPrefix(value, unit, digits = 3) {
  const power = Math.min(4, Math.max(0, Math.floor(Math.log10(value) / 3 + 1e-9)));
  return `${Number((value / 1000 ** power).toPrecision(digits)).toLocaleString('en-US')} ${['', 'k', 'M', 'G', 'T'][power]}${unit}`.trim();
}
const roofText = (roof) => `${roof.name} ${withPrefix(roof.per_s, roof.is_bandwidth ? 'B/s' : 'FLOP/s')}`;

/** Ends of the axes: all marks, and a decade or so of every roof around them. */
function rooflineRange({ roofs, marks }) {
  const positive = (values) => values.filter((value) => value > 0), x = positive(marks.x), y = positive(marks.y);
  const peak = Math.max(...roofs.filter((roof) => !roof.is_bandwidth).map((roof) => roof.per_s), ...y);
  const ridges = roofs.filter((roof) => roof.is_bandwidth).map((roof) => peak / roof.per_s);
  return { x: [Math.min(...x, ...ridges) / 3, Math.max(...x, ...ridges) * 12], y: [Math.min(...y, peak / 100) / 3, peak * 3] };
}

function roofTraces(roofs, range, height, width) {
  const annotations = [], traces = [], slopes = roofs.filter((roof) => roof.is_bandwidth), flat = roofs.filter((roof) => !roof.is_bandwidth).sort((a, b) => b.per_s - a.per_s);
  const peak = flat.length ? flat[0].per_s : range.y[1] / 3, steepest = Math.max(...slopes.map((roof) => roof.per_s));
  const line = (x, y, roof) => traces.push({ x, y, mode: 'lines', name: plain(roof.name), ...hoverText([0, 1].map(() => `${roofText(roof)}, ${roof.origin}`)), line: { color: cssColor('faint'), width: 1.5 } });
  const decades = ([from, to]) => Math.log10(to / from), angle = -Math.atan((height / decades(range.y)) / (width / decades(range.x))) * 180 / Math.PI;
  const label = (x, y, text, options) => annotations.push({ x: Math.log10(x), y: Math.log10(y), text: plain(text), showarrow: false, font: { size: 11, color: cssColor('faint') }, ...options });
  slopes.forEach((roof, i) => {
    const start = Math.max(range.x[0], range.y[0] / roof.per_s), end = peak / roof.per_s, at = start * (end / start) ** (0.12 + 0.24 * (i % 4)); // apart, since the lines are close
    line([range.x[0], end], [range.x[0] * roof.per_s, peak], roof);
    label(at, at * roof.per_s, isNarrow() ? roof.name : roofText(roof), { textangle: angle, yshift: 9, xshift: -5 });
  });
  flat.forEach((roof, i) => {
    const isNear = i > 0 && flat[i - 1].per_s / roof.per_s < 1.5;
    line([slopes.length ? roof.per_s / steepest : range.x[0], range.x[1]], [roof.per_s, roof.per_s], roof);
    label(range.x[1], roof.per_s, roofText(roof), { xanchor: 'right', yanchor: isNear ? 'top' : 'bottom' });
  });
  return { traces, annotations };
}

function logAxis(title, [from, to], text) {
  const step = isNarrow() && to / from > 1e6 ? 2 : 1, decades = [];
  for (let power = Math.ceil(Math.log10(from)); power <= Math.log10(to); power += step) decades.push(10 ** power);
  return axis(title, { type: 'log', range: [from, to].map(Math.log10), automargin: false, tickvals: decades, ticktext: decades.map(text), showline: true });
}

/** The marks that the filters leave, a trace a shape, and a ring around those of the selected key. */
function markTraces(block, isOn, selection) {
  const colors = block.groups.map((_, i) => cssColor(color(i))), ink = cssColor('ink');
  const { marks } = block, shown = [...marks.x.keys()].filter(isOn), longest = Math.max(...shown.map((i) => marks.size[i]), 1e-9);
  const trace = (own, options) => ({ x: own.map((i) => marks.x[i]), y: own.map((i) => marks.y[i]), mode: 'markers', ...options });
  return [...block.shapes.map((name, shape) => [name, shape, shown.filter((i) => marks.shape[i] === shape)]).filter(([, , own]) => own.length)
    .map(([name, shape, own]) => trace(own, { name: plain(name), ...hoverText(own.map((i) => marks.hover[i])), customdata: own.map((i) => marks.key[i]),
      marker: { symbol: markSymbols[shape % markSymbols.length], opacity: 0.8, color: own.map((i) => colors[marks.group[i]] ?? ink),
        size: own.map((i) => 6 + 18 * Math.sqrt(marks.size[i] / longest)), line: markSymbols[shape % markSymbols.length].endsWith('open') ? { width: 1.5 } : { width: 1, color: cssColor('paper') } } })),
  trace(shown.filter((i) => marks.key[i] !== null && marks.key[i] === selection.key),
    { name: 'selected', hoverinfo: 'skip', marker: { symbol: 'circle-open', size: 32, color: cssColor('ink'), line: { width: 2.5 } } })];
}

function roofline(block, selection) {
  const { marks, groups, shapes, layers } = block, views = block.views || [], range = rooflineRange(block);
  const state = { groups: new Set(groups.keys()), shapes: new Set([...shapes.keys()].filter((i) => !(block.off || []).includes(i))), layer: null, view: 0 };
  const passes = (i) => (marks.group[i] === null || state.groups.has(marks.group[i])) && (state.layer === null || marks.layer[i] === null || marks.layer[i] === state.layer);
  const isOn = (i) => passes(i) && state.shapes.has(marks.shape[i]) && (!block.view || block.view[i] === state.view);
  const make = (element) => {
    const height = isNarrow() ? 380 : 520, margin = { l: 62, r: 10, t: isNarrow() ? 10 : 30, b: 48 };
    const { traces, annotations } = roofTraces(block.roofs, range, height - margin.t - margin.b, element.clientWidth - margin.l - margin.r);
    return { traces: [...traces, ...markTraces(block, isOn, selection)], layout: baseLayout({ height, margin, annotations, uirevision: 'zoom',
      xaxis: logAxis('FLOP/B', range.x, (value) => withPrefix(value, '', 1)), yaxis: logAxis('TFLOP/s', range.y, (value) => String(Number((value / 1e12).toPrecision(1)))) }) };
  };
  const filter = () => selection.hide(new Set(marks.key.filter((key, i) => key !== null && !passes(i)))); // draws this chart too
  const [element, redraw] = figure(block, make, (redraw) => h('div', { class: 'controls' },
    views.length > 1 ? selectOf('Marks', views, (i) => { state.view = i; redraw(); }) : null,
    shapes.length > 1 ? switches('Shapes', shapes.map((name, i) => shapeSigns[i % shapeSigns.length] + name), state.shapes, redraw) : null,
    groups.length > 1 ? switches('Groups', groups.map((name, i) => [swatch(color(i)), name]), state.groups, filter) : null,
    layers.length > 1 ? selectOf('Layer', ['all', ...layers], (i) => { state.layer = i === 0 ? null : i - 1; filter(); }) : null), selectKey(selection));
  addChart(selection, redraw, marks.key, marks.hover);
  return element;
}
