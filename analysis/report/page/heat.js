// Layer by metric: a table whose cells are coloured, so that it can be read, printed and heard.

// Of a metric without a natural end the largest value is full colour.
const fullScale = { share: null, of_roof: 100, occ_achieved: 100, occ_theory: 100, sm_active: 100, tensor_pipe_active: 100 };

function drawHeat(point) {
  const into = body('heat'), heat = point.heat;
  if (!heat.rows.length) return into.append(missing(heat.unavailable));
  if (heat.left_out.length)
    into.append(missing(`${heat.left_out.join(', ')}: ${point.counters_unavailable || point.ledger.roofs_unavailable || 'not counted for this point'}`));
  const most = heat.columns.map((column, i) => fullScale[column.name] || Math.max(...heat.rows.map((row) => Math.abs(row[i]) || 0)));
  const cell = (value, i) => {
    if (value === null) return h('td', { class: 'na' }, 'na');
    const strength = most[i] > 0 ? Math.min(1, Math.abs(value) / most[i]) : 0;
    return h('td', { style: `background: rgba(var(--heat), ${(0.5 * strength).toFixed(3)})` }, value.toFixed(heat.columns[i].decimals));
  };
  into.append(note('Each column has its own scale: percentages to 100, time share, IPC and ratios to the largest. Counters are weighted by time.'));
  into.append(h('div', { class: 'scroll', role: 'region', tabindex: '0', 'aria-label': 'Layers by metric' }, h('table', { class: 'heat' },
    h('thead', {}, h('tr', {}, heat.columns.map((column, i) => h('th', { scope: 'col', class: i ? 'right' : null, title: column.what }, column.header)))),
    h('tbody', {}, heat.rows.map((row) => h('tr', {}, h('th', { scope: 'row', class: 'name' }, String(row[0])), row.slice(1).map((value, i) => cell(value, i + 1))))))));
}
