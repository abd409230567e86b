// Curves over the points of a sweep, and the points that were not measured.

/** The axis along which most points differ; the others name the curves. */
function sweepAxis(points) {
  const distinct = (key) => new Set(points.map((point) => point[key])).size;
  const keys = ['batch', 'seq', 'precision', 'backend'];
  const along = keys.slice(0, 2).filter((key) => distinct(key) > 1).sort((a, b) => distinct(b) - distinct(a))[0] || keys.find((key) => distinct(key) > 1) || 'batch';
  return { along, apart: keys.filter((key) => key !== along && distinct(key) > 1) };
}

function drawSweep() {
  const into = body('sweep'), done = report.points.filter((point) => point.sweep.ms !== null);
  if (report.points.length < 2) return into.append(note('The result has one point: there is nothing to compare along.'));
  if (done.length > 1) {
    const { along, apart } = sweepAxis(done), values = [...new Set(done.map((point) => point[along]))];
    if (typeof values[0] === 'number') values.sort((a, b) => a - b);
    const curves = new Map();
    for (const point of done) {
      const name = apart.map((key) => (key === 'precision' || key === 'backend' ? point[key] : `${key} ${point[key]}`)).join(', ') || point.precision;
      if (!curves.has(name)) curves.set(name, []);
      curves.get(name).push(point);
    }
    const colors = () => opColors[isDark() ? 'dark' : 'light'], key = into.appendChild(h('p', { class: 'note' }));
    const drawKey = () => key.replaceChildren(...[...curves.keys()].map((name, i) => h('span', {}, swatch(colors()[i % 8]), name + '   ')));
    drawKey();
    themed.push(drawKey);
    const side = into.appendChild(h('div', { class: 'side' }));
    for (const [title, unit, field, detail] of [['Time of a forward pass, ms', 'ms', 'ms', 'measured; log scale'], ['Useful work, TFLOP/s', 'TFLOP/s', 'tflop_per_s', 'derived: FLOPs of the cost model over the latency'],
      ['Energy a sequence, J', 'J', 'energy_j', 'measured']]) {
      if (!done.some((point) => point.sweep[field] !== null)) {
        side.append(h('figure', {}, h('figcaption', {}, title), missing('no point has it')));
        continue;
      }
      chart(side, title, detail, () => ({
        traces: [...curves.values()].map((points, i) => ({ x: points.map((point) => String(point[along])), y: points.map((point) => point.sweep[field]), mode: 'lines+markers',
          marker: { size: 8 }, line: { color: colors()[i % 8], width: 2 }, hovertext: points.map((point) => `${plain(pointName(point))}<br>${significant(point.sweep[field])} ${unit}`), hoverinfo: 'text' })),
        layout: baseLayout({ height: 260, xaxis: axis(along, { type: 'category', categoryarray: values.map(String), categoryorder: 'array' }),
          yaxis: axis('', field === 'ms' ? { type: 'log', dtick: 1, minor: { dtick: 'D1' } } : { rangemode: 'tozero' }) }) }));
    }
  }
  into.append(smallTable('All points', [['point', 'name'], ['status'], ['ms', 'right'], ['tokens/s', 'right'], ['TFLOP/s', 'right'], ['J a sequence', 'right'], ['reason', 'wide']],
    report.points.map((point) => [pointName(point), point.status, significant(point.sweep.ms, 4), significant(point.sweep.tokens_per_s, 4),
      significant(point.sweep.tflop_per_s), significant(point.sweep.energy_j), point.reason])));
}
