// The sections of the page, each a function from a plan of the report to an element.
'use strict';

/** More devices than this are shown slowest first, this many at a time. */
const MANY_DEVICES = 64;
/** More rectangles than this are not drawn in a row of the table. */
const MANY_RECTANGLES = 200;

function hasCost(plan) {
  return plan.cost_ms !== undefined;
}

/** -1 without a prediction, or if no device is slower than another. */
function slowestDevice(plan) {
  return plan.slowest === undefined ? -1 : plan.slowest;
}

/** Device numbers, by number or the slowest (without costs the fullest) first. */
function deviceNumbers(plan, slowestFirst, most) {
  const numbers = plan.devices.map((_, number) => number);
  if (slowestFirst) {
    const key = hasCost(plan) ? 'total_ms' : 'memory_bytes';
    numbers.sort((a, b) => plan.devices[b][key] - plan.devices[a][key] || a - b);
  }
  return numbers.slice(0, most);
}

function keyFigures(report, plan) {
  const slowest = slowestDevice(plan);
  const fullest = Math.max(...plan.devices.map((device) => device.memory_bytes / device.memory_limit_bytes));
  const bound = plan.search.lower_bound_ms;
  const figures = [
    hasCost(plan) ? ['predicted cost', milliseconds(plan.cost_ms)] : null,
    slowest >= 0 ? ['slowest', 'device ' + slowest, 'slowest'] : null,
    hasCost(plan) && bound > 0 && bound <= plan.cost_ms ? ['above the lower bound', perCent(plan.cost_ms / bound - 1, 1)] : null,
    ['fullest memory', perCent(fullest)],
    ['tables', integer(report.task.tables.length)],
    ['devices', integer(report.task.world_size)],
    ['batch', integer(report.task.batch_size)],
  ];
  return element('dl', {class: 'figures'}, ...figures.filter(Boolean).map(([name, value, mark]) =>
    element('div', {}, element('dt', {}, name), element('dd', {class: mark}, value))));
}

/** The first screen: the slowest device in words, and every device's time and memory. */
function overview(report, plan, view) {
  const slowest = slowestDevice(plan);
  const detail = element('div');
  const boxes = element('div');
  const many = plan.devices.length > MANY_DEVICES;

  const showDevice = (number) => {
    detail.replaceChildren(deviceDetail(report, plan, number, () => view.showTablesOf(number)));
  };
  const draw = () => {
    const numbers = deviceNumbers(plan, order.value === 'slowest', amount.value === 'all' ? undefined : MANY_DEVICES);
    const costs = hasCost(plan)
      ? [chartNode('Time of each device, stacked by what it is spent on', costChart(plan, numbers, slowest, showDevice)),
         partsExplained(plan)]
      : [];
    boxes.replaceChildren(...costs,
      element('h3', {}, 'Memory of each device against its limit'),
      chartNode('Memory of each device against its limit', memoryChart(plan, numbers), 'low'));
    drawCharts();
  };
  const order = element('select', {onchange: draw},
    element('option', {value: 'number', selected: !many}, 'number'),
    element('option', {value: 'slowest', selected: many}, hasCost(plan) ? 'slowest first' : 'fullest first'));
  const amount = element('select', {onchange: draw},
    element('option', {value: 'some', selected: many}, String(MANY_DEVICES)),
    element('option', {value: 'all', selected: !many}, 'all ' + integer(plan.devices.length)));
  view.afterwards.push(draw);
  return element('section', {id: 'overview'},
    element('p', {class: 'headline'}, plan.words[0]),
    element('p', {class: 'words'}, plan.words.slice(1).join(' ')),
    keyFigures(report, plan),
    hasCost(plan) ? element('h3', {}, 'What each device does in an iteration') : null,
    element('div', {class: 'controls'},
      element('label', {}, 'Devices by ', order),
      many ? element('label', {}, 'show ', amount) : null,
      hasCost(plan) ? element('span', {class: 'muted'}, 'click on a device to see what lies on it') : null),
    detail, boxes);
}

/** What the parts of a device's time are, from the bottom of its bar to the top. */
function partsExplained(plan) {
  const all = plan.devices.some((device) => device.all_reduce_ms > 0);
  return element('p', {class: 'muted'},
    'From the bottom up, in the order of an iteration: gradients of the looked-up values come back (backward communication)' +
    (all ? ', those of tables that are on every device are added up (all-reduce)' : '') +
    ', tables are updated and looked up for the next batch (computation), the device waits for the last one to be ready, and what was looked up is sent to the devices that need it (forward communication).');
}

function deviceDetail(report, plan, number, showTables) {
  const device = plan.devices[number];
  const shares = new Map();
  for (const piece of plan.pieces) {
    if (piece[5] === number) shares.set(piece[0], (shares.get(piece[0]) || 0) + piece[7]);
  }
  const heaviest = [...shares].sort((a, b) => b[1] - a[1]).slice(0, 5);
  const parts = PARTS.filter(([field]) => device[field] > 0)
    .map(([field, name]) => `${name} ${milliseconds(device[field])}`);
  return element('div', {class: 'detail', id: 'device-detail'},
    element('b', {}, `Device ${number}`), `: ${milliseconds(device.total_ms)} = ${parts.join(' + ')}. `,
    `${counted(device.num_pieces, 'piece')}, ${bytes(device.memory_bytes)} of ${bytes(device.memory_limit_bytes)}. `,
    heaviest.length > 0 ? 'It looks up most in ' + heaviest.map(([table, looked]) =>
      `${visible(report.task.tables[table].name)} (${perCent(looked / device.looked_up_bytes)})`).join(', ') + '. ' : null,
    element('button', {type: 'button', onclick: showTables}, 'Its tables'));
}

function deviceTable(plan) {
  const slowest = slowestDevice(plan);
  const rows = plan.devices.map((device, number) => ({device, number}));
  const time = (title, field) => ({
    title, number: true, value: (row) => row.device[field],
    text: (row) => (row.device[field] === undefined ? '' : row.device[field].toFixed(3)),
  });
  const columns = [
    {title: 'device', number: true, value: (row) => row.number},
    {title: 'pieces', number: true, value: (row) => row.device.num_pieces, wide: true},
    {title: 'memory', number: true, value: (row) => row.device.memory_bytes, text: (row) =>
      `${bytes(row.device.memory_bytes)} (${perCent(row.device.memory_bytes / row.device.memory_limit_bytes)})`},
  ];
  if (hasCost(plan)) {
    for (const [field, name] of PARTS) {
      if (plan.devices.some((device) => device[field] > 0)) {
        columns.push(Object.assign(time(name.replace('communication', 'comm.').replace(' for the last device', '') + ' ms', field), {wide: true}));
      }
    }
    columns.push(time('total ms', 'total_ms'));
  }
  return section('devices', 'Devices in numbers', sortableTable(columns, {
    rows, pageSize: 16, label: 'Devices', rowClass: (row) => (row.number === slowest ? 'slowest' : ''),
    sortBy: hasCost(plan) && rows.length > 16 ? columns.length - 1 : 0, descending: rows.length > 16,
  }).node);
}

/** Tables with their pieces: what the table of tables shows. */
function placedTables(report, plan) {
  const rows = report.task.tables.map((table, index) =>
    ({table, index, pieces: [], devices: [], copies: false, memory: 0, lookedUp: 0, key: table.name.toLowerCase()}));
  for (const piece of plan.pieces) {
    const row = rows[piece[0]];
    row.pieces.push(piece);
    row.memory += piece[6];
    row.lookedUp += piece[7];
  }
  for (const index of plan.replicated_tables) {
    const {table} = rows[index];
    const values = report.task.batch_size * table.pooling_factor * table.embedding_dim;
    rows[index].copies = true;
    rows[index].memory = table.memory_bytes * report.task.world_size;
    rows[index].lookedUp = values * (table.data_type === 'fp16' ? 2 : 4);
  }
  for (const row of rows) row.devices = [...new Set(row.pieces.map((piece) => piece[5]))].sort((a, b) => a - b);
  return rows;
}

function deviceColour(device) {
  return `hsl(${(device * 137.5) % 360} 55% ${64 + 12 * (device % 2)}%)`;
}

/** A table's rectangles to scale: columns from left to right, rows from top to bottom. */
function rectangles(row, width, height, labels) {
  const {table} = row;
  const drawn = shape('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': row.copies ? 'whole on every device' : counted(row.pieces.length, 'piece')});
  if (row.copies) {
    drawn.append(shape('rect', {class: 'outline', x: .5, y: .5, width: width - 1, height: height - 1}),
                 shape('text', {x: width / 2, y: height / 2 + 4, 'text-anchor': 'middle', 'font-size': 11, fill: 'currentColor'}, 'every device'));
    return drawn;
  }
  const byWidth = width / table.embedding_dim;
  const byHeight = height / table.num_embeddings;
  for (const [, rowOffset, numRows, columnOffset, numColumns, device] of row.pieces) {
    const box = {x: columnOffset * byWidth, y: rowOffset * byHeight, width: numColumns * byWidth, height: numRows * byHeight};
    const title = `rows ${integer(rowOffset)}–${integer(rowOffset + numRows - 1)}, columns ${columnOffset}–${columnOffset + numColumns - 1}: device ${device}`;
    drawn.append(shape('rect', Object.assign({fill: deviceColour(device)}, box), shape('title', {}, title)));
    if (labels && box.width > 26 && box.height > 13) {
      drawn.append(shape('text', {x: box.x + box.width / 2, y: box.y + box.height / 2 + 4, 'text-anchor': 'middle', 'font-size': 12, fill: '#000'}, String(device)));
    }
  }
  return drawn;
}

function tableDetail(report, row) {
  if (row.copies) {
    return element('div', {class: 'detail'},
      `${visible(row.table.name)} is whole on each of ${counted(report.task.world_size, 'device')}, which looks up its own share of the batch there; the gradients are summed over all devices.`);
  }
  const most = 100;
  const pieces = [...row.pieces].sort((a, b) => b[7] - a[7]);
  const line = ([, rowOffset, numRows, columnOffset, numColumns, device, memory, looked]) => element('tr', {},
    ...[String(device), `${integer(rowOffset)}–${integer(rowOffset + numRows - 1)}`,
        `${columnOffset}–${columnOffset + numColumns - 1}`, bytes(memory), perCent(looked / row.lookedUp, 1)]
      .map((text) => element('td', {class: 'number'}, text)));
  return element('div', {class: 'detail'},
    element('p', {}, element('b', {}, visible(row.table.name)),
      `: ${integer(row.table.num_embeddings)} rows (downwards) × ${integer(row.table.embedding_dim)} columns (to the right) in ${counted(row.pieces.length, 'piece')}; the numbers are devices`),
    element('div', {class: 'scroll'}, rectangles(row, 640, 180, true)),
    element('div', {class: 'scroll'}, element('table', {},
      element('thead', {}, element('tr', {}, ...['device', 'rows', 'columns', 'memory', 'its lookups']
        .map((title) => element('th', {class: 'number'}, title)))),
      element('tbody', {}, ...pieces.slice(0, most).map(line)))),
    pieces.length > most ? element('p', {class: 'muted'}, `${integer(pieces.length - most)} more pieces`) : null);
}

function devicesText(report, row) {
  if (row.copies) return 'all ' + integer(report.task.world_size);
  return row.devices.length <= 4 ? row.devices.join(', ') : `${integer(row.devices.length)} devices`;
}

function tablesSection(report, plan, view) {
  const rows = placedTables(report, plan);
  const total = rows.reduce((sum, row) => sum + row.lookedUp, 0);
  const cut = rows.filter((row) => row.pieces.length > 1).length;
  const copies = plan.replicated_tables.length;
  const columns = [
    {title: 'table', value: (row) => row.key, text: (row) => row.table.name, class: 'name'},
    {title: 'rows', number: true, value: (row) => row.table.num_embeddings, text: (row) => integer(row.table.num_embeddings)},
    {title: 'columns', number: true, value: (row) => row.table.embedding_dim, wide: true},
    {title: 'per sample', help: 'lookups per sample (pooling factor)', number: true, wide: true, value: (row) => row.table.pooling_factor,
      text: (row) => String(Number(row.table.pooling_factor.toPrecision(4)))},
    {title: 'memory', number: true, wide: true, value: (row) => row.memory, text: (row) => bytes(row.memory)},
    {title: 'lookups', help: 'share of all bytes that a batch looks up', number: true, value: (row) => row.lookedUp / total,
      text: (row) => perCent(row.lookedUp / total, 2)},
    {title: 'pieces', number: true, wide: true, value: (row) => (row.copies ? plan.devices.length : row.pieces.length)},
    {title: 'on device', value: (row) => (row.copies ? -1 : row.devices[0]), text: (row) => devicesText(report, row)},
    {title: 'drawn', wide: true, value: (row) => row.pieces.length, node: (row) =>
      (row.pieces.length > MANY_RECTANGLES ? document.createTextNode('open to see') : rectangles(row, 110, 26, false))},
  ];
  const table = sortableTable(columns, {
    rows, label: 'Tables', search: 'search a table', searchText: (row) => row.key,
    filters: [
      {label: 'on device', keeps: (row, device) => row.copies || row.devices.includes(Number(device)),
        choices: [['', 'any'], ...plan.devices.map((_, number) => [String(number), String(number)])]},
      {label: 'that are', choices: [['', 'any'], ['cut', 'cut'], ['whole', 'on one device'], ['copies', 'on every device']],
        keeps: (row, kind) => (kind === 'copies' ? row.copies : kind === 'cut' ? row.pieces.length > 1 : row.pieces.length === 1)},
    ],
    sortBy: 5, descending: true, detail: (row) => tableDetail(report, row),
  });
  view.showTablesOf = (number) => {
    table.filter(0, number);
    document.getElementById('tables').scrollIntoView();
  };
  return section('tables', 'Where every table went',
    element('p', {}, `${cut} of ${counted(rows.length, 'table')} ${cut === 1 ? 'is' : 'are'} cut into pieces` +
      (copies > 0 ? `, ${integer(copies)} ${copies === 1 ? 'is' : 'are'} whole on every device` : '') +
      '. A piece is a rectangle of rows and columns; the drawings are to scale, a colour stands for a device. Open a row for its pieces.'),
    table.node);
}
