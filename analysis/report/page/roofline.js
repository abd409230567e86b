// The roofline: performance against arithmetic intensity on log scales, roofs as lines, and marks, of which the groups
// (colours), the shapes, the layers and the views are switched. What a filter takes away leaves the tables too.

const shapeSigns = ['● ', '■ ', '▲ ', '○ ', '◆ '];

function withPrefix(value, unit, digits = 3) {
  const power = Math.min(4, Math.max(0, Math.floor(Math.log10(value) / 3 + 1e-9)));
  return `${Number((value / 1000 ** power).toPrecision(digits)).toLocaleString('en-US')} ${['', 'k', 'M', 'G', 'T'][power]}${unit}`.trim();
}
const roofText = (roof) => `${roof.name} ${withPrefix(roof.per_s, roof.is_bandwidth ? 'B/s' : 'FLOP/s')}`;

/** Ends of the axes: those of the marks that are drawn, up to the highest roof, with room for a mark and its label. The
 * axis of intensity ends a decade beyond the last ridge point: a GEMM's few bytes at L1 would stretch it to 1e6 FLOP/byte,
 * where nothing is to be read. `beyond`: marks further right, which a reader who zooms out sees. */
function rooflineRange(roofs, x, y) {
  const peak = Math.max(...roofs.filter((roof) => !roof.is_bandwidth).map((roof) => roof.per_s), ...y);
  const ridges = roofs.filter((roof) => roof.is_bandwidth).map((roof) => peak / roof.per_s), most = 10 * Math.max(...ridges);
  const near = ridges.length ? [...x.keys()].filter((i) => x[i] <= most) : [...x.keys()], ends = [...near.map((i) => x[i]), ...ridges];
  const [left, right] = ends.length ? [Math.min(...ends), Math.max(...ends)] : [1, 1000], low = near.length ? Math.min(...near.map((i) => y[i])) : peak / 1000;
  const room = Math.max(1.5, (right / left) ** 0.06);
  return { x: [left / room, right * room], y: [low / Math.max(1.8, (peak / low) ** 0.08), peak * Math.max(1.8, (peak / low) ** 0.12)], beyond: x.filter((value) => value > right * room).length };
}

function roofTraces(roofs, range, height, width) {
  const annotations = [], traces = [], slopes = roofs.filter((roof) => roof.is_bandwidth), flat = roofs.filter((roof) => !roof.is_bandwidth).sort((a, b) => b.per_s - a.per_s);
  const peak = flat.length ? flat[0].per_s : range.y[1] / 3, steepest = Math.max(...slopes.map((roof) => roof.per_s));
  const line = (x, y, roof) => traces.push({ x, y, mode: 'lines', name: plain(roof.name), ...hoverText([0, 1].map(() => `${roofText(roof)}, ${roof.origin}`)), line: { color: cssColor('faint'), width: 1.5 } });
  const decades = ([from, to]) => Math.log10(to / from), angle = -Math.atan((height / decades(range.y)) / (width / decades(range.x))) * 180 / Math.PI;
  const label = (x, y, text, options) => annotations.push({ x: Math.log10(x), y: Math.log10(y), text: plain(text), showarrow: false, font: { size: 11, color: cssColor('faint') }, ...options });
  const beyond = 1e6; // a reader who zooms out sees the lines go on
  slopes.forEach((roof, i) => {
    const ridge = peak / roof.per_s, start = Math.max(range.x[0], range.y[0] / roof.per_s), end = Math.min(ridge, range.x[1]), at = start * (end / start) ** (0.12 + 0.24 * (i % 4)); // apart, since the lines are close
    line([Math.min(range.x[0], ridge) / beyond, ridge], [Math.min(range.x[0], ridge) / beyond * roof.per_s, peak], roof);
    if (end / start > 2) label(at, at * roof.per_s, isNarrow() ? roof.name : roofText(roof), { textangle: angle, yshift: 9, xshift: -5 });
  });
  flat.forEach((roof, i) => {
    const isNear = i > 0 && flat[i - 1].per_s / roof.per_s < 1.5;
    line([slopes.length ? roof.per_s / steepest : range.x[0] / beyond, range.x[1] * beyond], [roof.per_s, roof.per_s], roof);
    label(range.x[1], roof.per_s, roofText(roof), { xanchor: 'right', yanchor: isNear ? 'top' : 'bottom' });
  });
  return { traces, annotations };
}

function logAxis(title, [from, to], text) {
  const step = isNarrow() && to / from > 1e6 ? 2 : 1, decades = [];
  for (let power = Math.ceil(Math.log10(from)); power <= Math.log10(to); power += step) decades.push(10 ** power);
  return axis(title, { type: 'log', range: [from, to].map(Math.log10), automargin: false, tickvals: decades, ticktext: decades.map(text), showline: true });
}

const labelFont = 11, mostLabels = () => (isNarrow() ? 6 : 12);
const pen = document.createElement('canvas').getContext('2d');
function textWidth(text) {
  pen.font = `${labelFont}px system-ui, sans-serif`;
  return pen.measureText(text).width;
}

/** Where Plotly draws labels of roofs: boxes in pixels, several along a slanted one. */
function boxesOf({ x, y, text, textangle, xanchor, yanchor, xshift = 0, yshift = 0 }, at) {
  const width = textWidth(text), [left, top] = at(10 ** x, 10 ** y);
  if (xanchor === 'right') return [{ left: left - width, right: left, top: yanchor === 'top' ? top : top - 18, bottom: yanchor === 'top' ? top + 18 : top }];
  const turn = textangle * Math.PI / 180, steps = Array.from({ length: Math.ceil(width / 10) }, (_, i) => i * 10 - width / 2);
  return steps.map((along) => [left + xshift + along * Math.cos(turn), top - yshift + along * Math.sin(turn)]).map(([cx, cy]) => ({ left: cx - 8, right: cx + 8, top: cy - 8, bottom: cy + 8 }));
}

const markSize = (size, longest) => 6 + 18 * Math.sqrt(size / longest);

/** Names at the marks that take longest, each layer once and only where it covers no mark, no roof's label and no other name; no
 * line either, where there is such a place. `lines`: their ends in pixels. */
function markLabels(marks, shown, at, taken, lines, width, height) {
  const longest = Math.max(...shown.map((i) => marks.size[i]), 1e-9), placed = [], named = new Set();
  const circles = shown.map((i) => [at(marks.x[i], marks.y[i]), markSize(marks.size[i], longest) / 2]).map(([[x, y], r]) => ({ left: x - r, right: x + r, top: y - r, bottom: y + r }));
  const isFree = (box) => box.left >= 0 && box.top >= 0 && box.right <= width && box.bottom <= height &&
    [...taken, ...circles].every((other) => box.right < other.left || box.left > other.right || box.bottom < other.top || box.top > other.bottom);
  const isOnLine = (box) => lines.some(([[x0, y0], [x1, y1]]) => [0, 0.25, 0.5, 0.75, 1].some((share) => {
    const x = box.left + share * (box.right - box.left), y = y0 + (y1 - y0) * (x - x0) / (x1 - x0);
    return x >= x0 && x <= x1 && y >= box.top - 2 && y <= box.bottom + 2;
  }));
  for (const i of [...shown].sort((a, b) => marks.size[b] - marks.size[a])) {
    const text = shortened(marks.label[i]), [x, y] = at(marks.x[i], marks.y[i]), r = markSize(marks.size[i], longest) / 2, w = textWidth(text) + 2, h = labelFont + 3;
    const layer = marks.layer[i] ?? text; // of all blocks: one block's step stands for the others
    if (named.has(layer) || placed.length === mostLabels()) continue;
    const places = [[r + 3 + w / 2, 0], [-r - 3 - w / 2, 0], [0, -r - 2 - h / 2], [0, r + 2 + h / 2]];
    const free = places.map(([dx, dy]) => ({ dx, dy, left: x + dx - w / 2, right: x + dx + w / 2, top: y + dy - h / 2, bottom: y + dy + h / 2 })).filter(isFree);
    const found = free.find((box) => !isOnLine(box)) ?? free[0];
    if (!found) continue;
    taken.push(found);
    named.add(layer);
    placed.push({ name: 'mark', x: Math.log10(marks.x[i]), y: Math.log10(marks.y[i]), xshift: found.dx, yshift: -found.dy, text: plain(text), showarrow: false, borderpad: 0, bgcolor: cssColor('paper'), font: { size: labelFont, color: cssColor('ink') } });
  }
  return placed;
}

/** Whether a mark is the step of another, or the layer or op kind in which that step is. */
const isAtMark = (marks, step, i) => (marks.key[i] !== null ? marks.key[i] === marks.key[step]
  : marks.layer[i] !== null ? marks.layer[i] === marks.layer[step] : marks.group[i] !== null && marks.group[i] === marks.group[step]);

/** The marks that the filters leave, a trace a shape, and a ring around those of the selected key. */
function markTraces(block, shown, selection) {
  const colors = block.groups.map((_, i) => cssColor(color(i))), ink = cssColor('ink');
  const { marks } = block, chosen = marks.key.indexOf(selection.key ?? NaN), longest = Math.max(...shown.map((i) => marks.size[i]), 1e-9);
  const trace = (own, options) => ({ x: own.map((i) => marks.x[i]), y: own.map((i) => marks.y[i]), mode: 'markers', ...options });
  return [...block.shapes.map((name, shape) => [name, shape, shown.filter((i) => marks.shape[i] === shape)]).filter(([, , own]) => own.length)
    .map(([name, shape, own]) => trace(own, { name: plain(name), ...hoverText(own.map((i) => marks.hover[i])), customdata: own.map((i) => marks.key[i]),
      marker: { symbol: markSymbols[shape % markSymbols.length], opacity: 0.8, color: own.map((i) => colors[marks.group[i]] ?? ink),
        size: own.map((i) => markSize(marks.size[i], longest)), line: markSymbols[shape % markSymbols.length].endsWith('open') ? { width: 1.5 } : { width: 1, color: cssColor('paper') } } })),
  trace(chosen < 0 ? [] : shown.filter((i) => isAtMark(marks, chosen, i)),
    { name: 'selected', hoverinfo: 'skip', marker: { symbol: 'circle-open', size: 32, color: cssColor('ink'), line: { width: 2.5 } } })];
}

function roofline(block, selection) {
  const { marks, groups, shapes, layers } = block, views = block.views || [];
  const state = { groups: new Set(groups.keys()), shapes: new Set([...shapes.keys()].filter((i) => !(block.off || []).includes(i))), layer: null, view: 0 };
  const passes = (i) => (marks.group[i] === null || state.groups.has(marks.group[i])) && (state.layer === null || marks.layer[i] === null || marks.layer[i] === state.layer);
  const isInView = (i) => state.shapes.has(marks.shape[i]) && (!block.view || block.view[i] === state.view);
  const note = h('span', { role: 'status' });
  const make = (element) => {
    const height = isNarrow() ? 380 : 520, margin = { l: 62, r: 10, t: isNarrow() ? 10 : 30, b: 48 };
    const inView = [...marks.x.keys()].filter(isInView), shown = inView.filter(passes); // the filters leave the axes as they are
    const range = rooflineRange(block.roofs, inView.map((i) => marks.x[i]), inView.map((i) => marks.y[i])), tall = height - margin.t - margin.b, wide = element.clientWidth - margin.l - margin.r;
    const part = (value, [from, to]) => Math.log(value / from) / Math.log(to / from), at = (x, y) => [wide * part(x, range.x), tall * (1 - part(y, range.y))];
    note.textContent = range.beyond ? `${range.beyond} of ${inView.length} marks lie further right than the axis, where no roof of memory is near` : '';
    const { traces, annotations } = roofTraces(block.roofs, range, tall, wide);
    const names = markLabels(marks, shown, at, annotations.flatMap((label) => boxesOf(label, at)), traces.map(({ x, y }) => x.map((value, i) => at(value, y[i]))), wide, tall);
    return { traces: [...traces, ...markTraces(block, shown, selection)], layout: baseLayout({ height, margin, annotations: [...annotations, ...names], uirevision: state.view,
      xaxis: logAxis('Arithmetic intensity (FLOP/byte)', range.x, (value) => withPrefix(value, '', 1)), yaxis: logAxis('Performance (TFLOP/s)', range.y, (value) => String(Number((value / 1e12).toPrecision(1)))) }) };
  };
  const filter = () => selection.hide(new Set(marks.key.filter((key, i) => key !== null && !passes(i)))); // draws this chart too
  const [element, redraw] = figure(block, make, (redraw) => h('div', { class: 'controls' },
    views.length > 1 ? selectOf('Marks', views, (i) => { state.view = i; redraw(); }) : null,
    shapes.length > 1 ? switches('Shapes', shapes.map((name, i) => shapeSigns[i % shapeSigns.length] + name), state.shapes, redraw) : null,
    groups.length > 1 ? switches('Groups', groups.map((name, i) => [swatch(color(i)), name]), state.groups, filter) : null,
    layers.length > 1 ? selectOf('Layer', ['all', ...layers], (i) => { state.layer = i === 0 ? null : i - 1; filter(); }) : null, note), selectKey(selection));
  addChart(selection, redraw, marks.key, marks.hover);
  return element;
}
