// The charts, all drawn by Chart.js; their colours are the page's, and follow it into the dark and
// onto paper.
'use strict';

/** Charts of the page: {canvas, configuration(), chart}. */
const charts = [];

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}

/** Pale: as #rrggbb with an alpha. */
function pale(name) {
  return colour(name) + '66';
}

/** A chart in a box of its own; `configuration` is asked again whenever the colours change. */
function chartNode(description, configuration, className = '') {
  const canvas = element('canvas', {role: 'img', 'aria-label': description});
  charts.push({canvas, configuration, chart: null});
  return element('div', {class: ('chart ' + className).trim()}, canvas);
}

/** Draws what is on the page and not drawn yet, and forgets what has left the page. */
function drawCharts() {
  for (let i = charts.length - 1; i >= 0; --i) {
    const entry = charts[i];
    if (entry.canvas.isConnected && entry.chart === null) {
      entry.chart = new Chart(entry.canvas, withDefaults(entry.configuration()));
    } else if (!entry.canvas.isConnected) {
      if (entry.chart) entry.chart.destroy();
      charts.splice(i, 1);
    }
  }
}

function redrawCharts(width) {
  for (const entry of charts) {
    if (entry.chart) entry.chart.destroy();
    entry.chart = null;
  }
  drawCharts();
  if (width === undefined) return;
  for (const entry of charts) entry.chart.resize(width, entry.canvas.parentNode.clientHeight);
}

function withDefaults(configuration) {
  const text = colour('text');
  const line = colour('line');
  const options = configuration.options;
  options.animation = false;
  options.maintainAspectRatio = false;
  options.responsive = true;
  options.color = text;
  const legend = (options.plugins || {}).legend || {};
  legend.labels = Object.assign({boxWidth: 14, color: text}, legend.labels);
  options.plugins = Object.assign({}, options.plugins, {legend: Object.assign({position: 'bottom'}, legend)});
  for (const scale of Object.values(options.scales)) {
    scale.grid = Object.assign({color: line, borderColor: line}, scale.grid);
    scale.ticks = Object.assign({color: colour('muted'), maxRotation: 0, autoSkipPadding: 8}, scale.ticks);
    if (scale.title) scale.title = Object.assign({display: true, color: colour('muted')}, scale.title);
  }
  return configuration;
}

/** An axis that differences of a thousandth do not fill. */
function costRange(costs) {
  const known = costs.filter((cost) => typeof cost === 'number');
  const least = Math.min(...known);
  const most = Math.max(...known);
  const room = Math.max(.08 * (most - least), .005 * most);
  return {suggestedMin: least - room, suggestedMax: most + room};
}
