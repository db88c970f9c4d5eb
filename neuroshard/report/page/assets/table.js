// A table that is searched, sorted by its columns, and shows a page at a time, so that thousands of
// rows stay quick.

/**
 * columns: {title, value(row), text(row)?, node(row)?, number: bool, wide: bool, class}: what is
 *   sorted by, and what is shown.
 * options: {rows, pageSize, search: placeholder, searchText(row), filters: [{label, choices:
 *   [[value, text]], keeps(row, value)}], sortBy: column, descending, detail(row), rowClass(row),
 *   label}.
 * Returns {node, filter(index, value)}.
 */
function sortableTable(columns, options) {
  const pageSize = options.pageSize || 25;
  const filters = options.filters || [];
  const state = {
    query: '',
    filters: filters.map(() => ''),
    column: options.sortBy === undefined ? null : options.sortBy,
    descending: options.descending || false,
    page: 0,
    open: null,
  };
  let kept = options.rows;

  const body = element('tbody');
  const range = element('span', {class: 'muted', 'aria-live': 'polite'});
  const previous = element('button', {type: 'button', onclick: () => turn(-1)}, '‹ previous');
  const next = element('button', {type: 'button', onclick: () => turn(1)}, 'next ›');
  const pages = element('div', {class: 'controls'}, previous, next);

  const headings = columns.map((column, index) => {
    const button = element('button', {type: 'button', onclick: () => sortBy(index)}, column.title);
    return element('th', {class: classOf(column), scope: 'col', title: column.help}, button);
  });
  const selects = filters.map((filter, index) => {
    const select = element(
      'select', {onchange: () => { state.filters[index] = select.value; start(); }},
      ...filter.choices.map(([value, text]) => element('option', {value}, text)));
    return select;
  });
  const search = options.search === undefined ? null : element('input', {
    type: 'search',
    placeholder: options.search,
    'aria-label': options.search,
    oninput: () => { state.query = search.value.trim().toLowerCase(); start(); },
  });
  const controls = element(
    'div', {class: 'controls'}, search,
    ...selects.map((select, index) => element('label', {}, filters[index].label + ' ', select)), range);
  const node = element(
    'div', {class: 'data-table'}, controls,
    element('div', {class: 'scroll'},
            element('table', {'aria-label': options.label}, element('thead', {}, element('tr', {}, ...headings)), body)),
    pages);

  function classOf(column) {
    return [column.number ? 'number' : '', column.wide ? 'wide' : '', column.class || ''].join(' ').trim() || null;
  }

  function sortBy(index) {
    // Numbers are looked at from the largest on.
    state.descending = state.column === index ? !state.descending : Boolean(columns[index].number);
    state.column = index;
    start();
  }

  function turn(by) {
    state.page += by;
    state.open = null;
    show();
  }

  /** Searches and sorts anew, and shows the first page. */
  function start() {
    const text = options.searchText;
    kept = options.rows.filter((row) =>
      (!state.query || text(row).includes(state.query)) &&
      filters.every((filter, index) => state.filters[index] === '' || filter.keeps(row, state.filters[index])));
    if (state.column !== null) {
      const value = columns[state.column].value;
      const sign = state.descending ? -1 : 1;
      const keyed = kept.map((row) => [value(row), row]);
      keyed.sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0));
      kept = keyed.map(([, row]) => row);
    }
    state.page = 0;
    state.open = null;
    show();
  }

  function rowNode(row) {
    const cells = columns.map((column) => {
      const cell = element('td', {class: classOf(column)});
      if (column.node) cell.append(column.node(row));
      else cell.textContent = visible(column.text ? column.text(row) : column.value(row));
      return cell;
    });
    const classes = [options.rowClass ? options.rowClass(row) : '', options.detail ? 'can-open' : '',
                     state.open === row ? 'is-open' : ''].join(' ').trim();
    const made = element('tr', {class: classes || null}, ...cells);
    if (options.detail) {
      made.tabIndex = 0;
      made.setAttribute('aria-expanded', String(state.open === row));
      const toggle = () => { state.open = state.open === row ? null : row; show(); };
      made.addEventListener('click', toggle);
      made.addEventListener('keydown', (event) => { if (event.key === 'Enter') toggle(); });
    }
    return made;
  }

  function show() {
    const first = state.page * pageSize;
    const shown = kept.slice(first, first + pageSize);
    const nodes = [];
    for (const row of shown) {
      nodes.push(rowNode(row));
      if (state.open === row) {
        nodes.push(element('tr', {}, element('td', {colspan: columns.length}, options.detail(row))));
      }
    }
    body.replaceChildren(...nodes);
    headings.forEach((heading, index) => {
      const order = index !== state.column ? 'none' : state.descending ? 'descending' : 'ascending';
      heading.setAttribute('aria-sort', order);
      heading.firstChild.textContent =
        columns[index].title + (order === 'none' ? '' : state.descending ? ' ▼' : ' ▲');
    });
    range.textContent = kept.length === 0
      ? 'nothing found'
      : kept.length <= pageSize && kept.length === options.rows.length
        ? ''
        : `${integer(first + 1)}–${integer(first + shown.length)} of ${integer(kept.length)}`;
    previous.disabled = state.page === 0;
    next.disabled = first + pageSize >= kept.length;
    pages.hidden = kept.length <= pageSize;
    controls.hidden = search === null && selects.length === 0 && range.textContent === '';
  }

  start();
  return {
    node,
    filter(index, value) {
      state.filters[index] = String(value);
      selects[index].value = String(value);
      start();
    },
  };
}
