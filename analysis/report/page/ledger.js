// The ledger: a stacked bar for the model; beside it the demands of roofs by op and layer, dependent steps, the cycles and
// what was found in two ways. And the checks of it: marginal costs, and forwards on fewer SMs.

function ledgerTraces(groups, names) {
  return report.lines.map((line, i) => ({ type: 'bar', orientation: 'h', name: plain(line.name), y: names,
    x: groups.map((group) => group.lines[i] / 1e3), marker: { color: lineColor(i), line: { color: cssColor('paper'), width: 0.5 } },
    hovertext: groups.map((group) => `<b>${plain(line.name)}</b> ${timeText(group.lines[i])}<br>${plain(group.name)}, ${group.steps} steps, ${timeText(group.time_us)}`),
    hoverinfo: 'text', textposition: 'none' })).filter((trace) => trace.x.some((value) => value !== 0));
}

function ledgerChart(into, title, detail, groups, rowHeight) {
  // Names are positions of the axis, so that two long ones which shorten to the same text keep a bar each.
  const positions = groups.map((_, i) => i);
  chart(into, title, detail, () => ({
    traces: ledgerTraces(groups, positions),
    layout: baseLayout({ height: 60 + rowHeight * groups.length, barmode: 'relative', bargap: 0.25, margin: { l: 8, r: 12, t: 8, b: 44 },
      xaxis: axis('ms'), yaxis: axis('', { autorange: 'reversed', tickvals: positions, showgrid: false,
        ticktext: groups.map((group) => shortened(group.name, isNarrow() ? 16 : 32) + ' ') }) }) }));
}

/** The roofs that demand a twentieth of the time of some layer, longest of the model first: as many as there are colours. */
function shownRoofs(ledger) {
  const isShown = (name) => ledger.by_layer.some((group) => group.demands.some((sum) => !sum.busy && sum.name === name && sum.us >= group.time_us / 20));
  return ledger.demands.filter((sum) => !sum.busy && isShown(sum.name)).map((sum) => sum.name).slice(0, opColors.light.length);
}

/** For each group its time, and beside it what each of the roofs `names` demands, with the ends of its interval. */
function demandChart(into, title, detail, groups, names, rowHeight) {
  const positions = groups.map((_, i) => i);
  if (names.length === 0) return;
  const bar = (name, color, values) => ({ type: 'bar', orientation: 'h', name, y: positions, x: values.map((value) => value && value.us / 1e3),
    marker: { color }, hoverinfo: 'text', textposition: 'none',
    error_x: { type: 'data', symmetric: false, color: cssColor('ink'), thickness: 1, width: 2,
      array: values.map((value) => value ? (value.high - value.us) / 1e3 : 0), arrayminus: values.map((value) => value ? (value.us - value.low) / 1e3 : 0) },
    hovertext: values.map((value, i) => value ? `<b>${plain(name)}</b> ${timeText(value.us)}, ${timeText(value.low)} to ${timeText(value.high)}<br>${plain(groups[i].name)}` : '') });
  const colors = opColors[isDark() ? 'dark' : 'light'];
  chart(into, title, detail, () => ({
    traces: [bar('time', cssColor('faint'), groups.map((group) => ({ us: group.time_us, low: group.time_us, high: group.time_us }))),
      ...names.map((name, i) => bar(name, colors[i % colors.length], groups.map((group) => group.demands.find((sum) => !sum.busy && sum.name === name))))],
    layout: baseLayout({ height: 90 + rowHeight * groups.length, barmode: 'group', bargap: 0.3, showlegend: true, margin: { l: 8, r: 12, t: 8, b: 44 },
      legend: { orientation: 'h', y: 1.02, yanchor: 'bottom', traceorder: 'normal' },
      xaxis: axis('ms'), yaxis: axis('', { autorange: 'reversed', tickvals: positions, showgrid: false,
        ticktext: groups.map((group) => shortened(group.name, isNarrow() ? 16 : 32) + ' ') }) }) }));
}

/** The document's section; its lines get the colours of the bars. */
function ledgerParts(section) {
  const parts = sectionParts(section);
  for (const name of parts.flatMap((part) => [...part.querySelectorAll('tbody th')])) {
    const line = report.lines.findIndex((line) => line.name === name.textContent);
    if (line >= 0) name.replaceChildren(h('span', { class: 'line' }, swatch(lineColor(line)), name.textContent));
  }
  return parts;
}

function drawLedger(point) {
  const into = body('ledger'), ledger = point.ledger;
  if (ledger.unavailable) return into.append(missing(ledger.unavailable));
  const model = { name: 'model', steps: ledger.steps.length, time_us: ledger.end_to_end_us, lines: ledger.total };
  ledgerChart(into, 'The whole model, ms', 'Kernels (blue), time between them (green), corrections (grey).', [model], 70);
  const text = into.appendChild(h('div'));
  const drawText = () => text.replaceChildren(...ledgerParts(ledger.section));
  drawText();
  themed.push(drawText);
  if (point.demands) {
    into.append(h('h3', {}, point.demands.title));
    demandChart(into, 'By op kind, ms', 'The time in grey; below it what each roof demands, which overlap. Where two are as long, neither alone binds. Roofs under 5 % of every layer are in the table alone.', ledger.by_op, shownRoofs(ledger), 74);
    demandChart(into, 'By layer of all blocks, ms', '* stands for the number of the block.', ledger.by_layer, shownRoofs(ledger), 74);
    into.append(...sectionParts(point.demands, true));
  }
  for (const section of [point.dependent, point.cycles, point.closures]) if (section) into.append(h('h3', {}, section.title), ...sectionParts(section, true));
}

function drawMarginal(point) {
  const into = body('marginal');
  if (!point.ledger.marginal) return into.append(missing('marginal costs were not measured for this point'));
  into.append(...sectionParts(point.ledger.marginal));
}

function drawSms(point) {
  const into = body('sms');
  if (!point.sms) return into.append(missing('this point was not run on fewer SMs'));
  into.append(...sectionParts(point.sms));
}
