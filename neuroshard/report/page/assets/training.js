// The page of a training: errors in words and numbers, predictions next to measurements, errors by what
// samples are, and the learning curve.
'use strict';

(function () {
  const data = JSON.parse(document.getElementById('data').textContent);
  /** Of the parts: what was trained on is pale, what was not is above it. */
  const OF_PARTS = ['waiting', 'backward', 'forward', 'compute'];
  const COLOURS = ['forward', 'memory', 'compute', 'all-reduce', 'backward', 'waiting'];

  /** The part of the data that says most of new tasks: the last that the model was not trained on. */
  function overview() {
    const told = ['unseen tables', 'held out, forward', 'unseen combinations', 'unseen placements, forward', 'validation', 'validation, forward']
      .map((name) => data.metrics.find((part) => part.name === name)).find(Boolean) || data.metrics[0];
    const number = (field, title, digits) => ({
      title, number: true, value: (row) => (row[field] === null ? -Infinity : row[field]),
      text: (row) => (row[field] === null ? '' : digits === undefined ? integer(row[field]) : perCent(row[field], digits)),
    });
    const table = sortableTable([
      {title: 'part of the data', value: (row) => row.name},
      number('samples', 'samples'),
      number('mape', 'mean error', 2),
      Object.assign(number('median', 'median', 2), {wide: true}),
      Object.assign(number('percentile_95', '95% are within', 2), {wide: true}),
      {title: 'worst factor', number: true, wide: true, value: (row) => row.largest_factor || Infinity, text: (row) => (row.largest_factor ? row.largest_factor.toFixed(2) : '')},
      {title: 'rank correlation', number: true, wide: true, value: (row) => row.kendall_tau || 0, text: (row) => (row.kendall_tau === null ? '' : row.kendall_tau.toFixed(3))},
    ], {rows: data.metrics, label: 'Errors'});
    return element('section', {id: 'overview'},
      element('p', {class: 'headline'}, told
        ? `${visible(data.model)} is off by ${perCent(told.mape, 1)} on average, over ${counted(told.samples, 'sample')} of ${told.name}.`
        : visible(data.model)),
      told ? element('p', {class: 'words'}, `Half of its predictions there are within ${perCent(told.median, 1)}, 95% within ${perCent(told.percentile_95, 1)}.`) : null,
      table.node);
  }

  function scatterChart() {
    const known = data.samples.filter(([predicted, measured]) => predicted > 0 && measured > 0);
    const measured = known.map((sample) => sample[1]);
    const least = measured.reduce((a, b) => Math.min(a, b), Infinity);
    const most = measured.reduce((a, b) => Math.max(a, b), 0);
    return () => ({
      type: 'scatter',
      data: {
        datasets: [
          ...data.parts.map((part, number) => ({
            label: part, pointRadius: number === 0 ? 1.5 : 2, borderWidth: 0, order: data.parts.length - number,
            backgroundColor: colour(OF_PARTS[number % OF_PARTS.length]),
            data: known.filter((sample) => sample[2] === number).map(([y, x]) => ({x, y})),
          })),
          {type: 'line', label: 'equal', order: -1, data: [{x: least, y: least}, {x: most, y: most}], borderColor: colour('slowest'), borderWidth: 1.5, pointRadius: 0, backgroundColor: 'transparent'},
        ],
      },
      options: {
        plugins: {
          tooltip: {callbacks: {label: (item) => `${item.dataset.label}: predicted ${milliseconds(item.parsed.y)}, measured ${milliseconds(item.parsed.x)}`}},
        },
        scales: {
          x: {type: 'logarithmic', title: {text: 'measured [ms]'}},
          y: {type: 'logarithmic', title: {text: 'predicted [ms]'}},
        },
      },
    });
  }

  /** Mean errors of the samples by bins: [{label, samples, mape}]. */
  function bins(keyOf, labelOf) {
    const sums = new Map();
    for (const sample of data.samples) {
      const key = keyOf(sample);
      if (key === null || !(sample[1] > 0)) continue;
      const bin = sums.get(key) || {key, samples: 0, sum: 0};
      ++bin.samples;
      bin.sum += Math.abs(sample[0] / sample[1] - 1);
      sums.set(key, bin);
    }
    return [...sums.values()].sort((a, b) => a.key - b.key)
      .map((bin) => ({label: labelOf(bin.key), samples: bin.samples, mape: bin.sum / bin.samples}));
  }

  function binsChart(found, title) {
    return () => ({
      type: 'bar',
      data: {
        labels: found.map((bin) => bin.label),
        datasets: [{label: 'mean error', data: found.map((bin) => 100 * bin.mape), backgroundColor: colour('forward')}],
      },
      options: {
        plugins: {
          legend: {display: false},
          tooltip: {callbacks: {label: (item) => `mean error ${perCent(found[item.dataIndex].mape, 1)} of ${counted(found[item.dataIndex].samples, 'sample')}`}},
        },
        scales: {x: {grid: {display: false}, title: {text: title}}, y: {beginAtZero: true, title: {text: 'mean error [%]'}}},
      },
    });
  }

  const power = (value) => (value > 0 ? Math.floor(Math.log2(value)) : null);
  const range = (unit) => (exponent) => `${Number((2 ** exponent).toPrecision(3))}–${Number((2 ** (exponent + 1)).toPrecision(3))}${unit}`;

  function errors() {
    const kinds = [
      ['By cost', 'measured cost', bins((sample) => power(sample[1]), range(' ms'))],
      ['By width', 'mean columns of a piece', bins((sample) => power(sample[4]), range(''))],
      ['By batch', 'samples of a batch over all devices', bins((sample) => sample[3], integer)],
    ];
    return section('errors', 'Where the model errs',
      element('div', {class: 'columns'}, ...kinds.filter(([, , found]) => found.length > 0).map(([title, axis, found]) =>
        element('div', {}, element('h3', {}, title), chartNode('Mean error ' + title.toLowerCase(), binsChart(found, axis), 'low')))),
      element('h3', {}, 'By ' + data.group_title),
      sortableTable([
        {title: data.group_title, value: (group) => group.name.toLowerCase(), text: (group) => group.name, class: 'name'},
        {title: 'samples', number: true, value: (group) => group.samples, text: (group) => integer(group.samples)},
        {title: 'mean error', number: true, value: (group) => group.mape, text: (group) => perCent(group.mape, 1)},
        {title: 'predicted too', value: (group) => group.bias, text: (group) => (group.bias >= 0 ? 'high by ' : 'low by ') + perCent(Math.abs(group.bias), 1)},
      ], {rows: data.groups, search: 'search', searchText: (group) => group.name.toLowerCase(), sortBy: 2, descending: true, label: 'Errors by ' + data.group_title}).node);
  }

  /** The epochs of each network: they are counted from 1 again. */
  function networks() {
    const found = [];
    for (const epoch of data.epochs) {
      if (found.length === 0 || epoch[0] <= found[found.length - 1].slice(-1)[0][0]) found.push([]);
      found[found.length - 1].push(epoch);
    }
    return found;
  }

  function curveChart(field, title, factor) {
    const all = networks();
    return () => ({
      type: 'line',
      data: {
        datasets: all.map((epochs, number) => ({
          label: all.length === 1 ? 'network' : 'network ' + (number + 1), borderColor: colour(COLOURS[number % COLOURS.length]), backgroundColor: colour(COLOURS[number % COLOURS.length]),
          pointRadius: 0, borderWidth: 1.5, data: epochs.map((epoch) => ({x: epoch[0], y: factor * epoch[field]})),
        })),
      },
      options: {
        interaction: {mode: 'nearest', intersect: false},
        scales: {x: {type: 'linear', title: {text: 'epoch'}}, y: {type: 'logarithmic', title: {text: title}}},
      },
    });
  }

  function curves() {
    return section('curve', 'Learning curve',
      data.best_epochs.length > 0 ? element('p', {}, `Kept: epoch ${data.best_epochs.map(integer).join(', ')}, the best on validation.`) : null,
      element('div', {class: 'columns'},
        element('div', {}, element('h3', {}, 'Validation'), chartNode('Validation error by epoch', curveChart(2, 'mean error [%]', 100))),
        element('div', {}, element('h3', {}, 'Training'), chartNode('Training loss by epoch', curveChart(1, 'loss', 1)))));
  }

  document.querySelector('h1').textContent = 'Training';
  document.title = visible(data.model) + ' – NeuroShard training';
  followTheme();
  followPrinter();
  const shown = data.samples.length < data.num_samples ? ` Drawn are ${integer(data.samples.length)}, evenly chosen of ${integer(data.num_samples)}.` : '';
  showSections([
    overview(),
    section('samples', 'Predicted against measured',
      element('p', {class: 'muted'}, 'On the line, a prediction is right; a point above it is predicted too high.' + shown),
      chartNode('Predicted against measured cost of each sample', scatterChart(), 'tall')),
    errors(),
    data.epochs.length > 0 ? curves() : null,
  ].filter(Boolean), {samples: 'Samples', errors: 'Errors', curve: 'Learning curve'});
  drawCharts();
  document.getElementById('footer').textContent =
    `${visible(data.model)}: model of ${data.kind}. NeuroShard ${data.version}; charts by Chart.js.`;
}());
