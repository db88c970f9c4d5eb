// What every page does: it shows sections, and follows the reader's colours and the printer.
'use strict';

function section(id, title, ...children) {
  return element('section', {id}, element('h2', {}, title), ...children);
}

/** Puts the sections on the page, with links to all but the first; `names` are short ones by id. */
function showSections(sections, names) {
  document.getElementById('report').replaceChildren(...sections);
  document.querySelector('header nav').replaceChildren(...sections.slice(1).map((each) =>
    element('a', {href: '#' + each.id, title: each.querySelector('h2').textContent}, names[each.id])));
}

function followTheme() {
  const root = document.documentElement;
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  const button = document.getElementById('theme');
  const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : dark.matches);
  const label = () => { button.textContent = isDark() ? 'Light' : 'Dark'; };
  button.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    label();
    redrawCharts();
  });
  dark.addEventListener('change', () => { label(); redrawCharts(); });
  label();
}

/** Paper is white, and as wide as it is whatever the window. */
function followPrinter() {
  const root = document.documentElement;
  let chosen;
  window.addEventListener('beforeprint', () => {
    chosen = root.dataset.theme;
    root.dataset.theme = 'light';
    redrawCharts(680);
  });
  window.addEventListener('afterprint', () => {
    if (chosen === undefined) delete root.dataset.theme;
    else root.dataset.theme = chosen;
    redrawCharts();
  });
}
