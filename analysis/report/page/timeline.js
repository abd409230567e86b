// Kernels one after another: a bar each, a lane for each op kind. Starts are the sums of all times and gaps before.

function drawTimeline(point) {
  const into = body('timeline'), { rows, recorded, unavailable } = point.timeline;
  if (!rows.length) return into.append(missing(unavailable || 'no step was timed'));
  if (!recorded) into.append(missing(`kernels: ${unavailable}. Shown are the steps of the step run, one after another.`));
  const last = rows[rows.length - 1], inMs = last[0] + last[1] >= 1e4, scale = inMs ? 1e3 : 1, unit = inMs ? 'ms' : 'us';
  chart(into, `${recorded ? 'Kernels' : 'Steps'} in order of execution, ${unit}`, recorded
    ? 'measured, medians over the runs with records, which lengthen what they record; drag to zoom, click to select the step'
    : 'measured; drag to zoom, click to select the step', () => ({
    traces: state.ops.map((op, lane) => {
      const own = rows.filter((row) => point.steps[row[2]].op === op);
      return { type: 'bar', orientation: 'h', y: own.map(() => lane), base: own.map((row) => row[0] / scale), x: own.map((row) => row[1] / scale), width: 0.8,
        marker: { color: opColor(op), line: { width: 0 } }, customdata: own.map((row) => row[2]), textposition: 'none', hoverinfo: 'text',
        hovertext: own.map((row) => { const step = point.steps[row[2]]; return `${step.index} ${plain(step.layer)}<br>${shortened(row[3] || step.kernel, 60)}<br>${timeText(row[1])} from ${timeText(row[0])}`; }) };
    }),
    layout: baseLayout({ height: 80 + 34 * state.ops.length, barmode: 'overlay', hovermode: 'closest', margin: { l: 8, r: 12, t: isNarrow() ? 8 : 30, b: 44 }, xaxis: axis(unit),
      yaxis: axis('', { fixedrange: true, showgrid: false, autorange: 'reversed', tickvals: state.ops.map((_, lane) => lane),
        ticktext: state.ops.map((op) => shortened(op, isNarrow() ? 14 : 24) + ' ') }) }) }), (hit) => selectStep(hit.customdata));
}
