// The answer, the key figures, the ceilings, the environment, the method.

function drawAnswer(point) {
  const into = body('answer');
  if (report.points.length > 1)
    into.append(h('div', { class: 'controls' }, selectOf('Point of the sweep',
      report.points.map((other, i) => [String(i), other.name + (other.status === 'done' ? '' : ', ' + other.status)]),
      String(state.point), (value) => showPoint(Number(value)))));
  else into.append(note(point.name));
  if (point.status !== 'done') into.append(h('p', { class: 'warning' }, `This point was ${point.status}: ${point.reason || 'no reason recorded'}`));
  for (const sentence of point.answer) into.append(h('p', { class: 'lead' }, sentence));
  for (const warning of report.warnings) into.append(h('p', { class: 'warning' }, 'Warning: ' + warning));
}

function drawFigures(point) {
  const into = body('figures');
  if (!point.figures) return into.append(missing(point.reason || 'the point has no times'));
  into.append(...sectionParts(point.figures), note('Every figure says where it is from: measured; derived from the cost model; estimated; or unavailable, with the reason.'));
}

function drawCeilings() { body('ceilings').append(...sectionParts(report.ceilings)); }

function drawConditions(into, point) {
  const state = point.conditions;
  const readings = [['SM or core clock, MHz', state.clock_mhz], ['power, W', state.power_w], ['temperature, °C', state.temperature_c]];
  const present = readings.filter(([, values]) => values.some((value) => value !== null));
  if (!present.length) return into.append(h('h3', {}, 'Clock and power during the samples'), missing('the result holds no readings over time'));
  const side = into.appendChild(h('div', { class: 'side' }));
  for (const [title, values] of present)
    chart(side, title, 'measured during the samples', () => ({
      traces: [{ x: state.at_s, y: values, mode: 'lines+markers', marker: { size: 4 }, line: { color: cssColor('accent'), width: 1.5 },
        hovertemplate: '%{y} at %{x} s<extra></extra>' }],
      layout: baseLayout({ height: 200, xaxis: axis('s since the sampling began'), yaxis: axis('') }) }));
}

function drawEnvironment(point) {
  const into = body('environment');
  into.append(...sectionParts(report.environment));
  if (point.checks) into.append(h('h3', {}, point.checks.title), ...sectionParts(point.checks, true));
  if (point.state) into.append(h('h3', {}, point.state.title), ...sectionParts(point.state, true));
  drawConditions(into, point);
}

function drawMethod() {
  const into = body('method'), file = (name) => h('code', {}, name);
  into.append(
    h('p', {}, 'Three kinds of run, never mixed: timing runs carry no profiler and give the latency; activity runs record each kernel; counter runs read hardware counters, one range a step. The ledger adds the parts up to the latency of the timing runs; what recording adds, drift and residual are lines of their own.'),
    h('p', {}, 'Roofs are measured on this machine. A step’s demand is the longest of the times that its FLOPs and bytes need at their roofs; what a step takes above it is split by counters. Verdicts come from one table of rules with thresholds.'),
    h('p', {}, 'In full, with the limits of each figure: ', file('docs/method.md'), '; fields of the result: ', file('docs/schema.md'), '; columns of the table: ', file('docs/table.md'), '.'));
}
