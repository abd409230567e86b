// The hierarchical roofline: roofs as lines, a mark for each step (or group) and level of memory, filters, and the step
// that is selected here, in the timeline or in the table.

const markLook = { DRAM: 'circle', L2: 'square', L1: 'triangle-up', streaming: 'circle-open' };

/** A mark as an object; rows are as html_explanation.cpp writes them. */
function markOf(row, point) {
  const [name, layer, op, level, time_us, flops, bytes, intensity, flop_per_s, streaming, roof, share, position] = row;
  const step = position === null ? null : point.steps[position];
  return { name: step ? `${step.index} ${step.layer}` : name, group: step ? step.group : layer, op: step ? step.op : op, kernel: step ? step.kernel : '',
    level: streaming ? 'streaming' : report.levels[level], time_us, flops, bytes, intensity, flop_per_s, roof, share, position };
}

const passesFilter = (op, group) => (op === '' || state.onOps.has(op)) && (state.group === '' || group === '' || group === state.group);

function markText(mark) {
  return [`<b>${plain(mark.name)}</b> ${plain(mark.op)}`, mark.kernel && shortened(mark.kernel, 60), `${timeText(mark.time_us)}, ${flopRate(mark.flop_per_s)}`,
    `${mark.level === 'streaming' ? 'streaming bytes at DRAM' : mark.level}: ${bytesText(mark.bytes)}, ${significant(mark.intensity)} FLOP/B`,
    `roof ${plain(mark.roof)}: ${percent(mark.share)} of it`].filter(Boolean).join('<br>');
}

/** The level of memory whose bandwidth a ceiling is. */
function levelOfRoof(name) {
  return name.includes('dram') ? 'DRAM' : name.includes('l2') ? 'L2' : 'L1';
}

/** Ends of the axes: all marks, and a decade or so of every roof around them. */
function rooflineRange(roofline, marks) {
  const x = marks.map((mark) => mark.intensity).filter((value) => value > 0), y = marks.map((mark) => mark.flop_per_s).filter((value) => value > 0);
  const peak = Math.max(...roofline.units.map((roof) => roof.per_s), ...y);
  const ridges = roofline.bandwidths.map((roof) => peak / roof.per_s);
  return { x: [Math.min(...x, ...ridges) / 3, Math.max(...x, ...ridges) * 12], y: [Math.min(...y, peak / 100) / 3, peak * 3] };
}

function roofTraces(roofline, range, height, width) {
  const traces = [], annotations = [], slopes = roofline.bandwidths.filter((roof) => state.levels.has(levelOfRoof(roof.name)) || (levelOfRoof(roof.name) === 'DRAM' && state.levels.has('streaming')));
  const peak = Math.max(...roofline.units.map((roof) => roof.per_s)), steepest = Math.max(...roofline.bandwidths.map((roof) => roof.per_s));
  const line = (x, y, name, text) => traces.push({ x, y, mode: 'lines', name, hoverinfo: 'text', hovertext: text, line: { color: cssColor('faint'), width: 1.5 } });
  const decades = (ends) => Math.log10(ends[1] / ends[0]);
  const angle = -Math.atan((height / decades(range.y)) / (width / decades(range.x))) * 180 / Math.PI;
  const label = (x, y, text, options) => annotations.push({ x: Math.log10(x), y: Math.log10(y), text, showarrow: false, font: { size: 11, color: cssColor('faint') }, ...options });
  slopes.forEach((roof, i) => {
    const text = `${plain(roof.name)} ${byteRate(roof.per_s)}`, start = Math.max(range.x[0], range.y[0] / roof.per_s), end = peak / roof.per_s;
    line([range.x[0], end], [range.x[0] * roof.per_s, peak], roof.name, `${text}, ${roof.origin}`);
    const at = start * (end / start) ** (0.12 + 0.24 * i); // apart, since the lines are close
    label(at, at * roof.per_s, isNarrow() ? levelOfRoof(roof.name) : text, { textangle: angle, yshift: 9, xshift: -5 });
  });
  const byHeight = [...roofline.units].sort((a, b) => b.per_s - a.per_s);
  byHeight.forEach((roof, i) => {
    const text = `${plain(roof.name)} ${flopRate(roof.per_s)}`, near = i > 0 && byHeight[i - 1].per_s / roof.per_s < 1.5;
    line([roof.per_s / steepest, range.x[1]], [roof.per_s, roof.per_s], roof.name, `${text}, ${roof.origin}`);
    label(range.x[1], roof.per_s, text, { xanchor: 'right', yanchor: near ? 'top' : 'bottom' });
  });
  return { traces, annotations };
}

function markTraces(marks) {
  const longest = Math.max(...marks.map((mark) => mark.time_us), 1e-9), levels = [...report.levels, 'streaming'];
  const traces = levels.filter((level) => state.levels.has(level)).map((level) => {
    const own = marks.filter((mark) => mark.level === level);
    return { x: own.map((mark) => mark.intensity), y: own.map((mark) => mark.flop_per_s), mode: 'markers', name: level, hoverinfo: 'text', hovertext: own.map(markText),
      customdata: own.map((mark) => mark.position), marker: { symbol: markLook[level], color: own.map((mark) => (mark.op ? opColor(mark.op) : cssColor('ink'))), opacity: 0.8,
        size: own.map((mark) => 6 + 18 * Math.sqrt(mark.time_us / longest)), line: { width: level === 'streaming' ? 1.5 : 1, color: level === 'streaming' ? undefined : cssColor('paper') } } };
  });
  const chosen = marks.filter((mark) => mark.position !== null && mark.position === state.step && state.levels.has(mark.level));
  traces.push({ x: chosen.map((mark) => mark.intensity), y: chosen.map((mark) => mark.flop_per_s), mode: 'markers', name: 'selected', hoverinfo: 'skip',
    marker: { symbol: 'circle-open', size: 32, color: cssColor('ink'), line: { width: 2.5 } } });
  return traces;
}

function rooflineFigure(point, element) {
  const roofline = point.roofline, all = roofline[state.marks].map((row) => markOf(row, point));
  const marks = all.filter((mark) => passesFilter(mark.op, mark.group)), height = isNarrow() ? 380 : 520, margin = { l: 62, r: 10, t: isNarrow() ? 10 : 30, b: 48 };
  const range = rooflineRange(roofline, roofline.steps.map((row) => markOf(row, point)));
  const { traces, annotations } = roofTraces(roofline, range, height - margin.t - margin.b, element.clientWidth - margin.l - margin.r);
  const logarithmic = (title, ends, text) => {
    const decades = [];
    for (let power = Math.ceil(Math.log10(ends[0])); power <= Math.log10(ends[1]); power += isNarrow() && ends[1] / ends[0] > 1e6 ? 2 : 1) decades.push(10 ** power);
    return axis(title, { type: 'log', range: ends.map(Math.log10), automargin: false, tickvals: decades, ticktext: decades.map(text), showline: true });
  };
  return { traces: [...traces, ...markTraces(marks)], layout: baseLayout({ height, margin, annotations, hovermode: 'closest', uirevision: state.point,
    xaxis: logarithmic('FLOP a byte', range.x, (value) => prefixed(value, '', 'M', 1)), yaxis: logarithmic('TFLOP/s', range.y, (value) => significant(value / 1e12, 1)) }) };
}

/** Levels of memory, and streaming bytes, for which there are marks. */
const levelsOf = (roofline) => [...report.levels, 'streaming'].filter((level) => roofline.steps.some((row) => (row[9] ? 'streaming' : report.levels[row[3]]) === level));

function drawRoofline(point) {
  const into = body('roofline'), roofline = point.roofline;
  if (roofline.unavailable) return into.append(missing(roofline.unavailable));
  const present = levelsOf(roofline);
  if (!present.length || !roofline.units.length) return into.append(missing('no step has FLOPs and bytes for which there are roofs'));
  const signs = { DRAM: '● ', L2: '■ ', L1: '▲ ', streaming: '○ ' };
  let drawing = null;
  const change = () => { charts.get(drawing)(); drawTableRows(); };
  const opSwitches = h('div');
  const drawOps = () => opSwitches.replaceChildren(switches('Ops', state.ops.map((op) => [op, swatch(opColor(op)), op]), state.onOps, change));
  drawOps();
  themed.push(drawOps);
  into.append(h('div', { class: 'controls', id: 'filters' },
    choice('Marks', [['steps', 'steps'], ['layers', 'layers'], ['ops', 'ops'], ['model', 'model']], state.marks, (value) => { state.marks = value; change(); }),
    switches('Levels', present.map((level) => [level, signs[level] + level]), state.levels, change), opSwitches,
    selectOf('Layer', [['', 'all layers'], ...[...new Set(point.steps.map((step) => step.group))].map((group) => [group, group])], state.group, (value) => { state.group = value; change(); })));
  const absent = report.levels.filter((level) => !present.includes(level));
  if (absent.length) into.append(missing(`marks at ${absent.join(', ')}: ${point.counters_unavailable || 'their bytes were not counted, or there is no roof'}`));
  if ([...roofline.bandwidths, ...roofline.units].some((roof) => roof.origin !== 'measured'))
    into.append(h('p', { class: 'missing' }, origin('estimated'), ' roofs from the machine’s datasheet: ', report.ceilings.unavailable));
  drawing = chart(into, 'Rate of FLOPs over intensity, TFLOP/s over FLOP a byte, log scales', 'FLOPs are the cost model’s, time is measured; bytes are counted where counters are, ' +
    'streaming bytes derived. Size: time. Hover for figures, click a step for its row.', (element) => rooflineFigure(point, element),
  (hit) => { if (Number.isInteger(hit.customdata)) selectStep(hit.customdata); });
  drawing.id = 'roofline-chart';
  into.append(h('div', { id: 'selection', 'aria-live': 'polite' }));
  drawSelection();
}

/** What is known of the selected step, with ways to its row and its mark. */
function drawSelection() {
  const into = document.getElementById('selection'), point = report.points[state.point];
  if (!into) return;
  if (state.step === null) return into.replaceChildren(note('No step is selected: click a mark, a bar of the timeline or a row of the table.'));
  const step = point.steps[state.step], ledger = point.ledger.steps.find((entry) => entry.step === state.step);
  const verdict = ledger && point.verdicts.steps.length === point.ledger.steps.length ? point.verdicts.steps[point.ledger.steps.indexOf(ledger)] : null;
  const demands = ledger ? ledger.demands.filter((demand) => demand.us > 0).map((demand) => `${demand.level || demand.roof} ${timeText(demand.us)}`) : [];
  into.replaceChildren(h('div', { class: 'detail' },
    h('p', {}, h('strong', {}, `Step ${step.index} ${step.layer}`), ` ${step.op}, ${step.shape}, ${step.precision}, ${step.provider}: ${step.kernel}`),
    ledger ? h('p', {}, `Takes ${timeText(ledger.time_us)}${demands.length > 0 ? `; roofs demand of it, side by side, ${demands.join(', ')}` : ''}.`) : missing(point.ledger.unavailable),
    verdict ? verdictText(verdict) : null,
    h('div', { class: 'group' }, h('button', { type: 'button', id: 'show-row', on: { click: () => goToRow() } }, 'Show its row'),
      h('button', { type: 'button', id: 'clear-selection', on: { click: () => selectStep(null) } }, 'Clear the selection'))));
}
