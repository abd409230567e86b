// A study: its four questions, a screen each, with a chart beside the answer; then what follows from them. It is of all
// points, so that choosing one does not draw it again.

const ofStudy = (element) => Boolean(element.closest('#study'));

/** Horizontal bars: a layer's time, split at what its roofs demand. */
function layerChart(into, layers) {
  const shown = layers.slice(0, 10), known = shown.some((layer) => layer[2] !== null);
  chart(into, 'Time by layer, ms', known ? 'measured; the lighter part is above what its roofs demand' : 'measured', () => ({
    traces: [['demanded by roofs', (layer) => layer[1] - (layer[2] ?? 0), 0], ['above', (layer) => layer[2], 5]].map(([name, value, color]) => ({
      type: 'bar', orientation: 'h', name, y: shown.map((layer) => shortened(layer[0], 22)), x: shown.map(value),
      marker: { color: opColors[isDark() ? 'dark' : 'light'][color] }, hoverinfo: 'text',
      hovertext: shown.map((layer) => `${plain(layer[0])}<br>${significant(layer[1])} ms` +
        (layer[2] === null ? '' : `, ${significant(layer[2])} ms above its roofs`) + `<br>${plain(layer[3])}`) })),
    layout: baseLayout({ height: 300, barmode: 'stack', xaxis: axis('ms'), yaxis: axis('', { autorange: 'reversed' }) }) }));
}

function batchChart(into, batches, what) {
  chart(into, `Throughput by batch, ${what}`, 'measured; bars are 95 % intervals, of few samples their range', () => ({
    traces: [{ x: batches.map((row) => row[0]), y: batches.map((row) => row[1]), mode: 'lines+markers', marker: { size: 9 },
      line: { color: cssColor('accent'), width: 2 }, hoverinfo: 'text',
      error_y: { type: 'data', symmetric: false, array: batches.map((row) => row[3] - row[1]), arrayminus: batches.map((row) => row[1] - row[2]) },
      hovertext: batches.map((row) => `batch ${row[0]}<br>${significant(row[1])} ${what}<br>${plain(row[4])}` +
        (row[5] === null ? '' : `<br>roofs demand ${significant(row[5])} % of the time`)) }],
    layout: baseLayout({ height: 300, xaxis: axis('batch', { type: 'log', tickvals: batches.map((row) => row[0]), ticktext: batches.map((row) => String(row[0])) }),
      yaxis: axis('', { rangemode: 'tozero' }) }) }));
}

function precisionChart(into, precisions) {
  const reference = precisions.find((row) => row[4] === 1) || precisions[0], colors = () => opColors[isDark() ? 'dark' : 'light'];
  chart(into, `Times as fast as ${reference[0]}`, 'left what was measured, right what the measured roofs of products allow', () => ({
    traces: [['measured', (row) => row[1], 0], ['roofs', (row) => row[4], 5]].map(([name, value, color]) => ({
      type: 'bar', name, x: precisions.map((row) => row[0]), y: precisions.map(value), marker: { color: colors()[color] },
      hoverinfo: 'text', hovertext: precisions.map((row) => `${row[0]}, ${name}<br>${significant(value(row))} times`),
      error_y: name === 'measured' ? { type: 'data', symmetric: false, array: precisions.map((row) => row[3] - row[1]), arrayminus: precisions.map((row) => row[1] - row[2]) } : undefined })),
    layout: baseLayout({ height: 300, barmode: 'group', xaxis: axis(''), yaxis: axis('', { rangemode: 'tozero' }) }) }));
}

function directionChart(into, ops) {
  const shown = ops.filter((op) => op[1] !== null || op[2] !== null).slice(0, 8);
  chart(into, 'Time by op kind, ms', 'measured; left forward, right backward', () => ({
    traces: [['forward', 1, 0], ['backward', 2, 1]].map(([name, at, color]) => ({ type: 'bar', name, x: shown.map((op) => shortened(op[0], 14)),
      y: shown.map((op) => op[at]), marker: { color: opColors[isDark() ? 'dark' : 'light'][color] }, hoverinfo: 'text',
      hovertext: shown.map((op) => `${plain(op[0])}, ${name}<br>${significant(op[at])} ms`) })),
    layout: baseLayout({ height: 300, barmode: 'group', xaxis: axis(''), yaxis: axis('ms', { rangemode: 'tozero' }) }) }));
}

function drawStudy() {
  const study = report.study, section = document.getElementById('study');
  if (!study) {
    section.remove();
    document.querySelector('nav a[href="#study"]').remove();
    return;
  }
  const into = body('study'), draws = { bottlenecks: [layerChart, study.layers], batch: [(into, rows) => batchChart(into, rows, study.throughput), study.batches],
    precision: [precisionChart, study.precisions], directions: [directionChart, study.ops] };
  into.append(h('p', { class: 'note' }, 'Each sentence is made of this result’s own points; brackets are 95 % intervals. ',
    study.answers.flatMap((answer) => [h('a', { href: '#study-' + answer.name }, answer.title), ' · ']), h('a', { href: '#study-more' }, 'What to change')));
  for (const answer of study.answers) {
    const told = answer.blocks.filter((block) => block.kind !== 'table'), tables = answer.blocks.filter((block) => block.kind === 'table');
    const picture = h('div', {}), [draw, rows] = draws[answer.name];
    into.append(h('article', { class: 'screen', id: 'study-' + answer.name }, h('h3', {}, answer.title),
      h('div', { class: 'side' }, h('div', {}, told.map((block) => blocks[block.kind](block, answer.title, true))), picture),
      tables.map((block) => h('div', { class: 'short' }, blocks.table(block, answer.title, true))),
      answer.sections.map((below) => h('details', {}, h('summary', {}, below.title + ' in full'), sectionParts(below, true)))));
    if (rows.length) draw(picture, rows);
    else picture.append(missing('nothing to draw: no point of this question may be evidence'));
  }
  into.append(h('div', { id: 'study-more' }, study.others.filter((other) => other).flatMap((other) => [h('h3', {}, other.title), ...sectionParts(other, true)])));
}
