// What all charts share: colours by theme, fonts, sizes, switches, and text that Plotly must not take for markup.

const draws = new WeakMap(); // element -> function that draws it, for another theme, width, selection or filter

/** Plotly reads <b>, <a href> and entities in labels and hover text: names are to be seen as they are. */
const plain = (text) => String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/\n/g, '<br>');
const hoverText = (texts) => ({ hoverinfo: 'text', hovertext: texts.map((text) => plain(text ?? '')) });

/** A name's middle gives way where there is no room. */
function shortened(text) {
  const most = isNarrow() ? 16 : 32;
  return text.length <= most ? text : text.slice(0, Math.ceil(most / 2) - 1) + '…' + text.slice(-Math.floor(most / 2));
}

const cssColor = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
const isNarrow = () => document.querySelector('main').clientWidth < 620;

/** Names of the style sheet's colours by position: eight that colour-blind readers can tell apart, then again. */
const color = (i) => 'c' + i % 8;
/** Those of series: what is faint is grey and takes no colour from the others. */
function seriesColors(series) {
  let grey = 0, colored = 0;
  return series.map((one) => (one.faint ? 'g' + grey++ % 3 : color(colored++)));
}

function axis(title, options) {
  return { title: { text: plain(title), standoff: 8 }, gridcolor: cssColor('rule'), zeroline: false, linecolor: cssColor('faint'),
    tickcolor: cssColor('rule'), automargin: true, ...options };
}

/** Text in a bar, where it has room. */
const inBar = { textposition: 'inside', insidetextanchor: 'middle', textangle: 0, insidetextfont: { size: 11 } };
const inBarSize = { mode: 'hide', minsize: 10 };

/** An axis of names, from the top. Names are positions of it, so that two which shorten to the same text keep a place each. */
const nameAxis = (names) => axis('', { autorange: 'reversed', showgrid: false, fixedrange: true,
  tickvals: [...names.keys()], ticktext: names.map((name) => plain(shortened(name)) + ' ') });

function baseLayout(options) {
  return { paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', showlegend: false, hovermode: 'closest', dragmode: isNarrow() ? false : 'zoom',
    font: { family: 'system-ui, sans-serif', size: isNarrow() ? 11 : 12, color: cssColor('ink') },
    hoverlabel: { align: 'left', bgcolor: cssColor('wash'), bordercolor: cssColor('faint'), font: { color: cssColor('ink'), size: 12 } },
    modebar: { bgcolor: 'rgba(0,0,0,0)', color: cssColor('faint'), activecolor: cssColor('accent') }, margin: { l: 8, r: 12, t: 8, b: 44 }, ...options };
}

/** The ends of each value's interval, as Plotly's error bars. */
function intervals(series, values) {
  if (!series.low || !series.high) return undefined;
  const reach = (ends, sign) => values.map((value, i) => (value === null || (ends[i] ?? null) === null ? 0 : sign * (ends[i] - value)));
  return { type: 'data', symmetric: false, thickness: 1, width: 2, color: cssColor('ink'), array: reach(series.high, 1), arrayminus: reach(series.low, -1) };
}

/** What the document says of each value, else the value under its name. */
function seriesHover(series, names, values, unit) {
  return hoverText(series.hover || values.map((value, i) => (value === null ? '' : `${names[i]}, ${series.name}: ${Number(value.toPrecision(4))} ${unit}`)));
}

/** Switches of the series where there are several. */
function legend(series, colors, on, redraw) {
  if (series.length < 2) return null;
  return h('div', { class: 'legend' }, switches('Series', series.map((one, i) => [swatch(colors[i]), one.name]), on, redraw));
}

/** A chart under its title and caption. `make(element)` gives traces and layout, again for another theme or width.
 * `controls(redraw)` stand above it. One with `onClick` can be zoomed too and has Plotly's buttons. */
function figure(block, make, controls = () => null, onClick = null) {
  const element = h('div', { class: 'chart', role: onClick ? 'group' : 'img', 'aria-label': [block.title, block.caption].filter(Boolean).join('. ') });
  draws.set(element, () => {
    const { traces, layout } = make(element);
    element.style.height = layout.height + 'px';
    layout.width = element.clientWidth; // or Plotly keeps the one it measured first
    Plotly.react(element, traces, layout, { displaylogo: false, responsive: false, showTips: false,
      displayModeBar: Boolean(onClick) && !isNarrow(), modeBarButtons: [['toImage', 'zoom2d', 'pan2d', 'zoomIn2d', 'zoomOut2d', 'resetScale2d']] });
    if (onClick && !element.dataset.clicks) {
      element.dataset.clicks = 'on';
      element.on('plotly_click', (event) => onClick(event.points[0].customdata));
    }
  });
  const redraw = () => drawChart(element);
  return [h('figure', {}, h('figcaption', {}, block.title, block.caption ? h('small', {}, block.caption) : null), controls(redraw), element), redraw];
}

/** Draws a chart where it can be seen; one in a closed section or in an alternative that is not chosen waits for that. */
function drawChart(element) {
  if (element.isConnected && element.clientWidth > 0) draws.get(element)();
}
function drawCharts(root = document) { root.querySelectorAll('.chart').forEach(drawChart); }

/** Ties a chart to the selection: `keys` and `hover` of its marks. */
function addChart(selection, redraw, keys, hover) {
  selection.add({ update: redraw, has: () => false, tell: (key) => hover[keys.indexOf(key)] ?? null });
}
const selectKey = (selection) => (key) => { if (Number.isInteger(key)) selection.select(key); };

