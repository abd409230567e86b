// What all charts share: colours by theme, fonts, sizes, and text that Plotly must not take for markup.

const charts = new Map(); // element -> function that draws it: when its section is complete, for another theme or width

/** Plotly reads <b>, <a href> and entities in labels and hover text: names of the result are to be seen as they are. */
const plain = (text) => String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

/** A name for an axis: its middle gives way where there is no room. */
function shortened(text, most) {
  text = String(text);
  return plain(text.length <= most ? text : text.slice(0, Math.ceil(most / 2) - 1) + '…' + text.slice(-Math.floor(most / 2)));
}

const isDark = () => document.documentElement.dataset.theme === 'dark';
const cssColor = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
const isNarrow = () => document.querySelector('main').clientWidth < 620;

// Okabe and Ito's colours, which colour-blind readers can tell apart, darker on white and lighter on black.
const opColors = {
  light: ['#0072b2', '#d55e00', '#008a64', '#b5518f', '#b98000', '#3a9bd0', '#6b6b6b', '#7a5195'],
  dark: ['#5cb0ee', '#ff8f4f', '#35c79b', '#e69ac6', '#f0bd4a', '#9bd5ff', '#b5b5b5', '#c3a1de'],
};
/** The colour of an op kind: by its place among the point's ops, the slowest first. */
function opColor(op) {
  const colors = opColors[isDark() ? 'dark' : 'light'];
  return colors[Math.max(0, state.ops.indexOf(op)) % colors.length];
}

// By line of the ledger: kernels blue, time between them green, corrections grey.
const lineColors = {
  light: ['#174f8c', '#15704f', '#63b592', '#8b8b8b', '#b4b4b4', '#4d4d4d'],
  dark: ['#4c94dc', '#3aa880', '#8fd3b5', '#8b8b8b', '#b4b4b4', '#e2e2e2'],
};
const lineColor = (i) => lineColors[isDark() ? 'dark' : 'light'][i % 6];

function axis(title, options) {
  return { title: { text: title, standoff: 8 }, gridcolor: cssColor('rule'), zeroline: false, linecolor: cssColor('faint'),
    tickcolor: cssColor('rule'), automargin: true, ...options };
}

function baseLayout(options) {
  return { paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', showlegend: false, dragmode: isNarrow() ? false : 'zoom',
    font: { family: 'system-ui, sans-serif', size: isNarrow() ? 11 : 12, color: cssColor('ink') },
    hoverlabel: { align: 'left', bgcolor: cssColor('wash'), bordercolor: cssColor('faint'), font: { color: cssColor('ink'), size: 12 } },
    modebar: { bgcolor: 'rgba(0,0,0,0)', color: cssColor('faint'), activecolor: cssColor('accent') }, margin: { l: 56, r: 12, t: 12, b: 44 }, ...options };
}

/** A chart under a caption. `make` returns its traces and layout and is called again for another theme or width. One
 * that can be zoomed and clicked has Plotly's buttons, in the margin above it. */
function chart(parent, title, detail, make, onClick) {
  const element = h('div', { class: 'chart', role: 'img', 'aria-label': title });
  parent.append(h('figure', {}, h('figcaption', {}, title, detail ? h('small', {}, detail) : null), element));
  const draw = () => {
    const { traces, layout } = make(element);
    element.style.height = layout.height + 'px';
    layout.width = element.clientWidth; // or Plotly keeps the one it measured first
    Plotly.react(element, traces, layout, { displaylogo: false, responsive: false, showTips: false,
      displayModeBar: Boolean(onClick) && !isNarrow(), modeBarButtons: [['toImage', 'zoom2d', 'pan2d', 'zoomIn2d', 'zoomOut2d', 'resetScale2d']] });
    if (onClick && !element.dataset.clicks) {
      element.dataset.clicks = 'on';
      element.on('plotly_click', (event) => onClick(event.points[0]));
    }
  };
  charts.set(element, draw);
  return element;
}

/** Draws all charts again; those that have left the page are forgotten. */
function redrawCharts() {
  for (const [element, draw] of charts) {
    if (element.isConnected) draw();
    else {
      Plotly.purge(element);
      charts.delete(element);
    }
  }
}
