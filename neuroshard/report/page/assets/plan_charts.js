// The charts of plans.
'use strict';

/** The parts of a device's time, in the order of an iteration: field, name, colour. */
const PARTS = [
  ['backward_comm_ms', 'backward communication', 'backward'],
  ['all_reduce_ms', 'all-reduce', 'all-reduce'],
  ['compute_ms', 'computation', 'compute'],
  ['waiting_ms', 'waiting for the last device', 'waiting'],
  ['forward_comm_ms', 'forward communication', 'forward'],
];

/** Stripes, so that waiting is told from work without its colour too. */
function stripes(name) {
  const size = 8;
  const tile = element('canvas', {width: size, height: size});
  const context = tile.getContext('2d');
  context.fillStyle = colour('background');
  context.fillRect(0, 0, size, size);
  context.strokeStyle = colour(name);
  context.lineWidth = 2.5;
  for (const offset of [-size, 0, size]) {
    context.beginPath();
    context.moveTo(offset - 1, size + 1);
    context.lineTo(offset + size + 1, -1);
    context.stroke();
  }
  return context.createPattern(tile, 'repeat');
}

function fillOf(name) {
  return name === 'waiting' ? stripes(name) : colour(name);
}

/** Frames the stack of bars at an index and writes over it. */
function markOf(index, label) {
  return {
    id: 'mark',
    afterDatasetsDraw(chart) {
      const bars = chart.getSortedVisibleDatasetMetas()
        .filter((meta) => meta.type === 'bar').map((meta) => meta.data[index]);
      if (index < 0 || bars.length === 0 || !bars[0]) return;
      const top = Math.min(...bars.map((bar) => bar.y));
      const bottom = chart.scales.y.getPixelForValue(0);
      const width = Math.max(bars[0].width, 3);
      const context = chart.ctx;
      context.save();
      context.strokeStyle = context.fillStyle = colour('slowest');
      context.lineWidth = 2;
      context.strokeRect(bars[0].x - width / 2, top, width, bottom - top);
      context.font = '600 13px system-ui, sans-serif';
      const half = context.measureText(label).width / 2;
      const x = Math.min(Math.max(bars[0].x, chart.chartArea.left + half), chart.chartArea.right - half);
      context.textAlign = 'center';
      context.fillText(label, x, top - 6);
      context.restore();
    },
  };
}

/** Bars of many devices touch. */
function barWidths(count) {
  return count > 100 ? {barPercentage: 1, categoryPercentage: 1} : {barPercentage: .92, categoryPercentage: .86};
}

/** The time of each device, stacked; `numbers` are the devices in the order shown. */
function costChart(plan, numbers, slowest, onDevice) {
  return () => {
    const parts = PARTS.filter(([field]) => plan.devices.some((device) => device[field] > 0));
    const datasets = parts.map(([field, label, name]) => Object.assign({
      label,
      data: numbers.map((number) => plan.devices[number][field]),
      backgroundColor: fillOf(name),
      stack: 'time',
    }, barWidths(numbers.length)));
    const bound = plan.search.lower_bound_ms;
    if (typeof bound === 'number' && bound > 0) {
      datasets.push({
        type: 'line', label: 'lower bound', stack: 'bound', order: -1, pointRadius: 0, borderWidth: 1.5,
        data: numbers.map(() => bound), borderColor: colour('bound'), borderDash: [6, 4],
        backgroundColor: 'transparent',
      });
    }
    return {
      type: 'bar',
      data: {labels: numbers.map(String), datasets},
      plugins: [markOf(numbers.indexOf(slowest), '▼ slowest')],
      options: {
        layout: {padding: {top: 22}},
        onClick: (event, found) => { if (found.length > 0) onDevice(numbers[found[0].index]); },
        interaction: {mode: 'index', intersect: false},
        plugins: {
          tooltip: {
            callbacks: {
              title: (items) => 'device ' + items[0].label,
              label: (item) => item.dataset.label + ': ' + milliseconds(item.parsed.y),
              footer: (items) => 'total: ' + milliseconds(plan.devices[Number(items[0].label)].total_ms),
            },
          },
        },
        scales: {
          x: {stacked: true, grid: {display: false}, title: {text: 'device (counted from 0)'}},
          y: {stacked: true, title: {text: 'ms per iteration'}},
        },
      },
    };
  };
}

function memoryChart(plan, numbers) {
  return () => {
    const most = Math.max(...plan.devices.map((device) => Math.max(device.memory_bytes, device.memory_limit_bytes)));
    const [unit, name] = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'bytes']]
      .find(([size]) => most >= size) || [1, 'bytes'];
    return {
      type: 'bar',
      data: {
        labels: numbers.map(String),
        datasets: [
          Object.assign({
            label: 'tables and optimizer state', backgroundColor: colour('memory'),
            data: numbers.map((number) => plan.devices[number].memory_bytes / unit),
          }, barWidths(numbers.length)),
          {
            type: 'line', label: 'limit', stepped: 'middle', order: -1, pointRadius: 0, borderWidth: 2,
            borderColor: colour('slowest'), backgroundColor: 'transparent',
            data: numbers.map((number) => plan.devices[number].memory_limit_bytes / unit),
          },
        ],
      },
      options: {
        interaction: {mode: 'index', intersect: false},
        plugins: {
          tooltip: {
            callbacks: {
              title: (items) => 'device ' + items[0].label,
              label: (item) => item.dataset.label + ': ' + bytes(item.parsed.y * unit),
              footer: (items) => {
                const device = plan.devices[Number(items[0].label)];
                return perCent(device.memory_bytes / device.memory_limit_bytes) + ' full';
              },
            },
          },
        },
        scales: {
          x: {grid: {display: false}, title: {text: 'device (counted from 0)'}},
          y: {beginAtZero: true, title: {text: name + ' of memory'}},
        },
      },
    };
  };
}

function historyChart(history) {
  const line = (label, points, name) => ({
    label, data: points.map(([x, y]) => ({x, y})), borderColor: colour(name), backgroundColor: colour(name),
    stepped: 'before', pointRadius: 3, borderWidth: 2,
  });
  return () => ({
    type: 'line',
    data: {
      datasets: [
        history.levels.length > 0 ? line('beam search', history.levels, 'forward') : null,
        history.rounds.length > 0 ? line('improvement (cost as the pessimist sees it)', history.rounds, 'compute') : null,
      ].filter(Boolean),
    },
    options: {
      interaction: {mode: 'nearest', intersect: false},
      plugins: {
        tooltip: {
          callbacks: {
            title: (items) => 'after ' + counted(items[0].parsed.x, 'priced plan'),
            label: (item) => item.dataset.label + ': ' + milliseconds(item.parsed.y),
          },
        },
      },
      scales: {
        x: {type: 'linear', title: {text: 'plans priced so far'}},
        y: Object.assign({title: {text: 'best cost so far [ms]'}},
                         costRange([...history.levels, ...history.rounds].map(([, cost]) => cost))),
      },
    },
  });
}

/** Best cost of each level of the beam search; infeasible levels are gaps. */
function levelsChart(levels) {
  return () => ({
    type: 'line',
    data: {
      labels: levels.map((level) => String(level.level)),
      datasets: [{
        label: 'best plan of the level', data: levels.map((level) => level.best_cost_ms), spanGaps: false,
        borderColor: colour('forward'), backgroundColor: colour('forward'), pointRadius: 3, borderWidth: 2,
      }],
    },
    options: {
      interaction: {mode: 'index', intersect: false},
      plugins: {
        tooltip: {
          callbacks: {
            title: (items) => 'level ' + items[0].label,
            label: (item) => milliseconds(item.parsed.y),
            footer: (items) => {
              const level = levels[items[0].dataIndex];
              return `${integer(level.states_feasible)} of ${counted(level.states_tried, 'list')} of cuts fit, or were given up as too dear`;
            },
          },
        },
      },
      scales: {
        x: {title: {text: 'level: one cut more than the one before'}},
        y: Object.assign({title: {text: 'cost [ms]'}}, costRange(levels.map((level) => level.best_cost_ms))),
      },
    },
  });
}

/** Costs next to each other: [{name, cost_ms, own}]. */
function comparisonChart(entries) {
  return () => ({
    type: 'bar',
    data: {
      labels: entries.map((entry) => visible(entry.name)),
      datasets: [{
        data: entries.map((entry) => entry.cost_ms),
        backgroundColor: entries.map((entry) => (entry.own ? colour('forward') : colour('waiting'))),
        barPercentage: .8,
      }],
    },
    options: {
      indexAxis: 'y',
      plugins: {
        legend: {display: false},
        tooltip: {callbacks: {label: (item) => milliseconds(item.parsed.x)}},
      },
      scales: {
        x: {beginAtZero: true, title: {text: 'predicted cost [ms]'}},
        y: {grid: {display: false}},
      },
    },
  });
}

/** Each device's predicted time, pale, next to its measured or simulated one. */
function evaluationChart(evaluation, numbers, how) {
  return () => {
    const stacks = [['predicted', evaluation.predicted], [how, evaluation.actual]];
    const parts = PARTS.filter(([field]) =>
      stacks.some(([, costs]) => costs.devices.some((device) => device[field] > 0)));
    const datasets = stacks.flatMap(([stack, costs]) => parts.map(([field, label, name]) => ({
      label,
      data: numbers.map((number) => costs.devices[number][field]),
      backgroundColor: stack === 'predicted' ? pale(name) : fillOf(name),
      stack,
    })));
    return {
      type: 'bar',
      data: {labels: numbers.map(String), datasets},
      options: {
        interaction: {mode: 'index', intersect: false},
        plugins: {
          legend: {labels: {filter: (item) => item.datasetIndex >= parts.length}},
          tooltip: {
            callbacks: {
              title: (items) => 'device ' + items[0].label,
              label: (item) => `${item.dataset.stack}: ${item.dataset.label} ${milliseconds(item.parsed.y)}`,
            },
          },
        },
        scales: {
          x: {stacked: true, grid: {display: false}, title: {text: `device: left, pale, predicted; right ${how}`}},
          y: {stacked: true, title: {text: 'ms per iteration'}},
        },
      },
    };
  };
}
