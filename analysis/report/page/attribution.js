// Bandwidth attribution: bytes and milliseconds by role and by level of memory, and what the layers move beyond need.

function barPair(into, title, detail, labels, unit, series) {
  const colors = () => [cssColor('faint'), cssColor('accent')];
  chart(into, title, detail, () => ({
    traces: series.map(([name, values], i) => ({ type: 'bar', orientation: 'h', y: labels.map((_, at) => at), x: values, marker: { color: colors()[i] },
      hovertext: labels.map((label, at) => `${plain(label)}, ${plain(name)}: ${significant(values[at])} ${unit}`), hoverinfo: 'text', textposition: 'none' })),
    layout: baseLayout({ height: 70 + 44 * labels.length, bargap: 0.3, margin: { l: 8, r: 12, t: 8, b: 44 }, xaxis: axis(unit),
      yaxis: axis('', { autorange: 'reversed', showgrid: false, tickvals: labels.map((_, at) => at), ticktext: labels.map((label) => plain(label) + ' ') }) }) }));
  const key = into.lastChild.querySelector('figcaption');
  const drawKey = () => key.querySelector('.key').replaceChildren(...series.map(([name], i) => h('span', {}, swatch(colors()[i]), name + '   ')));
  key.append(h('small', { class: 'key' }));
  drawKey();
  themed.push(drawKey);
}

function drawAttribution(point) {
  const into = body('attribution'), attribution = point.attribution;
  if (attribution.unavailable) return into.append(missing(attribution.unavailable));
  const label = attribution.counted ? 'measured by hardware counters' : 'derived from the cost model: no counters' +
    (point.counters_unavailable ? ' (' + point.counters_unavailable + ')' : '');
  const side = into.appendChild(h('div', { class: 'side' })), roles = attribution.roles, levels = attribution.levels;
  if (roles.length)
    barPair(side, 'DRAM bytes by role, GB', 'streaming bytes are derived; the others are ' + label, roles.map((role) => role.role), 'GB',
      [['streaming', roles.map((role) => role.streaming_bytes / 1e9)], ['attributed', roles.map((role) => role.attributed_bytes / 1e9)]]);
  if (roles.length)
    barPair(side, 'DRAM time by role, ms', 'bytes over DRAM’s bandwidth, derived', roles.map((role) => role.role), 'ms',
      [['hidden or not', roles.map((role) => role.dram_ms)], ['in steps that DRAM binds', roles.map((role) => role.exposed_ms)]]);
  if (levels.length)
    barPair(side, 'Time by level of memory, ms', 'bytes over the level’s bandwidth, derived', levels.map((level) => level.level), 'ms',
      [['all bytes', levels.map((level) => level.ms)], ['in steps that it binds', levels.map((level) => level.binding_ms)]]);
  into.append(...sectionParts(attribution.section));
}
