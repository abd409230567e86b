// The full table of steps or kernels: sorted by its headers, filtered by text, verdict and the roofline's filters.

const rowsAtFirst = 500; // more are shown on request: a page of tens of thousands of cells is slow

function tableOf(point) { return state.tableLevel === 'kernel' ? point.kernel_table : point.step_table; }
const stepOfRow = (table, i) => (table.steps ? table.steps[i] : i);

/** Rows without a value stand last either way. */
function compareCells(a, b, descending) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = typeof a === 'number' && typeof b === 'number' ? a - b : String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
  return descending ? -order : order;
}

function shownRows(point, table) {
  const wanted = state.text.toLowerCase(), verdictAt = table.columns.findIndex((column) => column.name === 'verdict');
  const rows = table.rows.map((row, i) => ({ row, step: stepOfRow(table, i) })).filter(({ row, step }) =>
    passesFilter(point.steps[step].op, point.steps[step].group) && (verdictAt < 0 || state.verdict === '' || row[verdictAt] === state.verdict) &&
    (wanted === '' || row.some((value) => typeof value === 'string' && value.toLowerCase().includes(wanted))));
  const at = table.columns.findIndex((column) => column.name === state.sort.column);
  if (at >= 0) rows.sort((a, b) => compareCells(a.row[at], b.row[at], state.sort.descending));
  return rows;
}

function cellText(column, value) {
  if (value === null) return 'na';
  if (typeof value !== 'number') return String(value);
  return Number.isInteger(value) && column.decimals === 0 ? value.toLocaleString('en-US') : value.toLocaleString('en-US',
    { minimumFractionDigits: column.decimals, maximumFractionDigits: column.decimals });
}

function headerCell(column) {
  const sorted = state.sort.column === column.name;
  return h('th', { scope: 'col', class: column.number ? 'right' : null, 'aria-sort': sorted ? (state.sort.descending ? 'descending' : 'ascending') : 'none' },
    h('button', { type: 'button', 'data-column': column.name, title: column.what, on: { click: () => sortBy(column) } },
      column.header + (sorted ? (state.sort.descending ? ' ↓' : ' ↑') : '')));
}

/** Numbers from the largest, text from A; the second time the other way round. */
function sortBy(column) {
  const again = state.sort.column === column.name;
  state.sort = { column: column.name, descending: again ? !state.sort.descending : column.number && column.name !== 'step' };
  drawTableRows();
  document.querySelector(`#table [data-column="${CSS.escape(column.name)}"]`).focus();
}

function tableRow(table, { row, step }) {
  return h('tr', { 'data-step': step, class: step === state.step ? 'selected' : null, on: { click: () => selectStep(step) } },
    row.map((value, i) => h('td', { class: [table.columns[i].number && 'right', value === null && 'na'].filter(Boolean).join(' ') || null,
      title: typeof value === 'string' && value.length > 30 ? value : null },
    i === 0 ? h('button', { type: 'button', 'aria-label': `Select step ${value}`, 'aria-pressed': String(step === state.step) }, cellText(table.columns[i], value)) : cellText(table.columns[i], value))));
}

function drawTableRows() {
  const into = document.getElementById('rows'), point = report.points[state.point];
  if (!into) return;
  const table = tableOf(point), rows = shownRows(point, table), shown = state.allRows ? rows : rows.slice(0, rowsAtFirst);
  into.replaceChildren(h('table', {}, h('thead', {}, h('tr', {}, table.columns.map(headerCell))), h('tbody', {}, shown.map((entry) => tableRow(table, entry)))));
  document.getElementById('row-count').textContent = `${shown.length} of ${table.rows.length} ${state.tableLevel}s shown` +
    (shown.length > 60 || table.columns.length > 12 ? '; in print the first 60, with twelve columns' : '');
  document.getElementById('more-rows').hidden = shown.length === rows.length;
}

function drawTable(point) {
  const into = body('table'), kernels = point.kernel_table;
  if (!point.step_table.rows.length) return into.append(missing(point.reason || 'the point has no steps'));
  const bounds = [...new Set(point.verdicts.steps.map((verdict) => verdict.bound))];
  const left = h('div');
  const drawLeft = () => left.replaceChildren(...(tableOf(point).left_out.length
    ? [note(`Left out, for want of a value in any row: ${tableOf(point).left_out.join(', ')}.`)] : []));
  into.append(h('div', { class: 'controls' },
    choice('Rows', [['step', 'steps'], ...(kernels.rows.length ? [['kernel', 'kernels']] : [])], state.tableLevel, (value) => { state.tableLevel = value; drawTableRows(); drawLeft(); }),
    h('label', {}, h('span', {}, 'Contains'), h('input', { type: 'search', id: 'contains', value: state.text, on: { input: (event) => { state.text = event.currentTarget.value; drawTableRows(); } } })),
    bounds.length ? selectOf('Verdict', [['', 'all verdicts'], ...bounds.map((bound) => [bound, bound])], state.verdict, (value) => { state.verdict = value; drawTableRows(); }) : null),
  note('The roofline’s filters by op and layer hold here too. A header sorts; a row selects its step in the roofline.'));
  if (point.counters_unavailable) into.append(missing('columns of counters: ' + point.counters_unavailable));
  if (!kernels.rows.length) into.append(missing('kernels: ' + (point.activity_unavailable || 'none were recorded')));
  into.append(h('div', { class: 'tall', role: 'region', tabindex: '0', 'aria-label': 'Steps or kernels', id: 'rows' }),
    h('p', { class: 'note' }, h('span', { id: 'row-count', role: 'status' }), ' ',
      h('button', { type: 'button', id: 'more-rows', on: { click: () => { state.allRows = true; drawTableRows(); } } }, 'Show all')), left);
  drawTableRows();
  drawLeft();
}

/** Brings the selected row into the table's window; without moving the page unless asked. */
function revealRow() {
  const box = document.getElementById('rows');
  if (!box || state.step === null) return null;
  let row = box.querySelector(`tr[data-step="${state.step}"]`);
  if (!row && !state.allRows) {
    state.allRows = true;
    drawTableRows();
    row = box.querySelector(`tr[data-step="${state.step}"]`);
  }
  if (row) box.scrollTop = row.offsetTop - box.clientHeight / 2;
  return row;
}

/** From the mark to the row. A row that the filters hide is shown by taking them off. */
function goToRow() {
  let row = revealRow();
  if (!row) {
    Object.assign(state, { group: '', text: '', verdict: '', onOps: new Set(state.ops) });
    drawRoofline(report.points[state.point]);
    drawTable(report.points[state.point]);
    row = revealRow();
  }
  if (!row) return;
  document.getElementById('table').scrollIntoView();
  row.querySelector('button').focus({ preventScroll: true });
}
