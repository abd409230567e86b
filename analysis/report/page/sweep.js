// Curves over the points of a sweep along one of its axes, what its series over batches and frames say, and the points
// that were not measured.

const distinctOf = (points, axis) => [...new Set(points.map((point) => point.axes[axis.name]).filter((value) => value !== undefined))];

/** The axes on which points differ, that with the most values first among counts. */
function sweepAxes(points) {
  const count = (axis) => distinctOf(points, axis).length;
  return report.axes.filter((axis) => count(axis) > 1).sort((a, b) => (a.count && b.count ? count(b) - count(a) : 0));
}

function medianOf(values) {
  const sorted = values.filter((value) => value !== null && value !== undefined).sort((a, b) => a - b), middle = sorted.length >> 1;
  if (!sorted.length) return null;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// The mark of a point tells which roof demands most of it.
// Levels of memory; any other roof is a unit's and has the square.
const roofMarks = { DRAM: 'circle', L2: 'diamond', L1: 'triangle-up' };
const roofMark = (roof) => (roof ? roofMarks[roof] || 'square' : 'circle-open');

/** What is drawn: title, unit, where it is from, and of a point the figure; undefined where it means nothing. */
function sweepCharts(points) {
  const achieved = points.every((point) => point.sweep.occ_achieved !== null);
  return [
    ['Time of one run, ms', 'ms', 'measured; log scale', (sweep) => sweep.ms],
    ['Throughput, tokens/s', 'tokens/s', 'measured', (sweep) => sweep.tokens_per_s],
    ['Useful work, TFLOP/s', 'TFLOP/s', 'derived: FLOPs of the cost model over the latency', (sweep) => sweep.tflop_per_s],
    ['Occupancy, %', '%', achieved ? 'achieved: counted, weighted by time' : 'theoretical: from the launches, weighted by time',
      (sweep) => (achieved ? sweep.occ_achieved : sweep.occ_theory)],
    ['Share of the binding roofs, %', '%', 'time that they demand over the latency; ■ compute, ● DRAM, ◆ L2, ▲ L1 demands most', (sweep) => sweep.roof_share],
    ['Energy a sequence, J', 'J', 'measured', (sweep) => sweep.energy_j],
  ];
}

/** Curves by name: of each the points by value on the axis; several there are repeats. */
function sweepCurves(points, along, apart) {
  const curves = new Map();
  for (const point of points) {
    const has = apart.filter((axis) => point.axes[axis.name] !== undefined);
    const name = has.map((axis) => (axis.bare ? '' : axis.name + ' ') + point.axes[axis.name]).join(', ') || point.axes.precision;
    if (!curves.has(name)) curves.set(name, new Map());
    const at = curves.get(name);
    const value = point.axes[along.name];
    if (value !== undefined) at.set(value, [...(at.get(value) || []), point]);
  }
  return curves;
}

function sweepTrace(at, values, unit, figure, color) {
  const all = values.filter((value) => at.has(value)), first = all.map((value) => at.get(value)[0]);
  const y = all.map((value) => medianOf(at.get(value).map((point) => figure(point.sweep))));
  const repeats = (value) => (at.get(value).length > 1 ? `<br>median of ${at.get(value).length} repeats` : '');
  const roof = (point) => (point.sweep.binding_roof ? `<br>most is demanded by ${plain(point.sweep.binding_roof)}` : '');
  return { x: all.map(String), y, mode: 'lines+markers', marker: { size: 9, symbol: first.map((point) => roofMark(point.sweep.binding_roof)) },
    line: { color, width: 2 }, hoverinfo: 'text',
    hovertext: all.map((value, i) => `${plain(first[i].name)}<br>${significant(y[i])} ${unit}${roof(first[i])}${repeats(value)}`) };
}

function drawCurves(into, points, axes, along) {
  into.replaceChildren();
  const values = distinctOf(points, along), curves = sweepCurves(points, along, axes.filter((axis) => axis !== along));
  if (typeof values[0] === 'number') values.sort((a, b) => a - b);
  const colors = () => opColors[isDark() ? 'dark' : 'light'], key = into.appendChild(h('p', { class: 'note' }));
  const drawKey = () => key.replaceChildren(...[...curves.keys()].map((name, i) => h('span', {}, swatch(colors()[i % 8]), name + '   ')));
  drawKey();
  themed.push(drawKey);
  const side = into.appendChild(h('div', { class: 'side' }));
  for (const [title, unit, detail, figure] of sweepCharts(points)) {
    if (points.every((point) => figure(point.sweep) === undefined)) continue;
    if (points.every((point) => (figure(point.sweep) ?? null) === null)) {
      side.append(h('figure', {}, h('figcaption', {}, title), missing('no point has it')));
      continue;
    }
    chart(side, title, detail, () => ({ traces: [...curves.values()].map((at, i) => sweepTrace(at, values, unit, figure, colors()[i % 8])),
      layout: baseLayout({ height: 260, xaxis: axis(along.title, { type: 'category', categoryarray: values.map(String), categoryorder: 'array' }),
        yaxis: axis('', unit === 'ms' ? { type: 'log', dtick: 1, minor: { dtick: 'D1' } } : { rangemode: 'tozero' }) }) }));
  }
}

function drawSweep() {
  const into = body('sweep'), done = report.points.filter((point) => point.sweep.ms !== null);
  if (report.points.length < 2) return into.append(note('The result has one point: there is nothing to compare along.'));
  const axes = sweepAxes(done);
  if (done.length > 1 && axes.length) {
    const curves = h('div', {});
    let along = axes[0];
    const draw = () => drawCurves(curves, done, axes, along);
    if (axes.length > 1)
      into.append(h('div', { class: 'controls' }, choice('Along', axes.map((axis) => [axis.name, axis.title]), along.name, (value) => {
        along = axes.find((axis) => axis.name === value);
        draw();
        redrawCharts();
      })));
    into.append(curves);
    draw();
  }
  for (const section of report.series) into.append(h('h3', {}, section.title), ...sectionParts(section, true));
  into.append(...sectionParts(report.all_points));
}
