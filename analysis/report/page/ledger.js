// The ledger: stacked bars for the model, by layer and by op, the lines in words, and the checks of it: marginal costs, and
// forwards on fewer SMs.

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
  ledgerChart(into, 'The whole model, ms', 'Demand of the roofs (blue), losses above it (warm), time between kernels (green), corrections (grey).', [model], 70);
  const text = into.appendChild(h('div'));
  ledgerChart(into, 'By op kind, ms', 'Without the corrections for recording, drift and residual, which are the model’s alone.', ledger.by_op, 30);
  ledgerChart(into, 'By layer of all blocks, ms', '* stands for the number of the block.', ledger.by_layer, 30);
  const drawText = () => text.replaceChildren(...ledgerParts(ledger.section));
  drawText();
  themed.push(drawText);
  if (point.cycles) into.append(h('h3', {}, point.cycles.title), ...sectionParts(point.cycles, true));
}

function drawMarginal(point) {
  const into = body('marginal');
  if (!point.ledger.marginal) return into.append(missing('marginal costs were not measured for this point'));
  into.append(...sectionParts(point.ledger.marginal));
}

function drawSms(point) {
  const into = body('sms');
  if (!point.sms) return into.append(missing('the forward was not run on fewer SMs for this point'));
  into.append(...sectionParts(point.sms));
}
