// A table whose cells are coloured, so that it can be read, printed and heard.

function heat(block, selection, title) {
  const label = block.title || title;
  // A column without a natural end has its largest value in full colour.
  const most = block.columns.map((column, i) => column.most ?? Math.max(...block.values.map((row) => Math.abs(row[i]) || 0)));
  const cell = (value, i) => {
    if (value === null) return h('td', { class: 'na' }, 'na');
    const strength = most[i] > 0 ? Math.min(1, Math.abs(value) / most[i]) : 0;
    return h('td', { style: `background: rgba(var(--heat), ${(0.5 * strength).toFixed(3)})` }, value.toFixed(block.decimals[i]));
  };
  const rows = () => [['', ...block.columns.map((column) => column.header)],
    ...block.rows.map((name, row) => [name, ...block.values[row].map((value) => (value === null ? '' : String(value)))])];
  return h('figure', { class: 'table' }, h('figcaption', {}, block.title, block.caption ? h('small', {}, block.caption) : null), exportButtons(label, rows),
    h('div', { class: 'scroll', role: 'group', tabindex: '0', 'aria-label': label }, h('table', { class: 'heat' },
      h('thead', {}, h('tr', {}, h('td', {}), block.columns.map((column) => h('th', { scope: 'col', class: 'right', title: column.what }, column.header)))),
      h('tbody', {}, block.rows.map((name, row) => h('tr', {}, h('th', { scope: 'row', class: 'name' }, name), block.values[row].map(cell)))))));
}
