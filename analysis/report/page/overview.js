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
  if (!point.figures.length) return into.append(missing(point.reason || 'the point has no times'));
  into.append(h('dl', { class: 'facts' }, point.figures.map((figure) => h('div', {}, h('dt', {}, figure.label),
    h('dd', {}, h('strong', {}, figure.value), origin(figure.origin), figure.note ? h('small', {}, figure.note) : null)))));
  into.append(note('Every figure says where it is from: measured; derived from the cost model; estimated; or unavailable, with the reason.'));
}

function drawCeilings() {
  const into = body('ceilings'), run = report.ceilings;
  if (!run.rows.length) return into.append(missing(run.unavailable));
  if (run.unavailable) into.append(missing(run.unavailable));
  const rows = run.rows.map((row) => {
    const share = row.value !== null && row.datasheet ? percent(row.value / row.datasheet) : 'na';
    return [row.name, row.value === null ? 'na' : significant(row.value, 4),
      row.value === null ? row.reason : `${significant(row.low, 4)} to ${significant(row.high, 4)}`, row.unit, origin(row.origin),
      row.datasheet === null ? 'na' : significant(row.datasheet, 4), share, row.clock_mhz === null ? 'na' : significant(row.clock_mhz, 4), row.what];
  });
  into.append(smallTable('Roofs measured here, beside what the maker states', [['ceiling'], ['value', 'right'], ['interval', 'right'], ['unit'],
    ['origin'], ['datasheet', 'right'], ['share of it', 'right'], ['clock MHz', 'right'], ['what it is', 'wide']], rows));
  into.append(note([run.device, run.driver && 'driver ' + run.driver, run.measured_at && 'measured ' + run.measured_at].filter(Boolean).join(', ')));
}

function drawConditions(into, point) {
  const state = point.conditions;
  const readings = [['SM or core clock, MHz', state.clock_mhz], ['power, W', state.power_w], ['temperature, °C', state.temperature_c]];
  const present = readings.filter(([, values]) => values.some((value) => value !== null));
  if (state.throttle_reasons.length)
    into.append(h('p', {}, `Clocks were held back during the samples by: ${state.throttle_reasons.join(', ')}.`));
  if (state.throttled_samples) into.append(h('p', {}, `${state.throttled_samples} throttled samples were discarded and repeated.`));
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
  into.append(smallTable('What this ran on', [['what'], ['value', 'wide']], report.environment));
  into.append(h('p', {}, 'Verification: ' + point.verification.text + ' ', origin(point.verification.origin)));
  drawConditions(into, point);
}

function drawMethod() {
  const into = body('method'), file = (name) => h('code', {}, name);
  into.append(
    h('p', {}, 'Three kinds of run, never mixed: timing runs carry no profiler and give the latency; activity runs record each kernel; counter runs read hardware counters, one range a step. The ledger adds the parts up to the latency of the timing runs; what recording adds, drift and residual are lines of their own.'),
    h('p', {}, 'Roofs are measured on this machine. A step’s demand is the longest of the times that its FLOPs and bytes need at their roofs; what a step takes above it is split by counters. Verdicts come from one table of rules with thresholds.'),
    h('p', {}, 'In full, with the limits of each figure: ', file('docs/method.md'), '; fields of the result: ', file('docs/schema.md'), '; columns of the table: ', file('docs/table.md'), '.'));
}
