// Numbers and names as people read them, and elements that hold them. Whatever comes from the data
// becomes text (textContent), never markup.
'use strict';

/** Characters that are obeyed instead of shown, as \x1b or \u202e: control characters, line
 * separators and turns of direction. */
function visible(text) {
  return String(text).replace(
    /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => {
      const code = character.codePointAt(0).toString(16);
      return code.length <= 2 ? '\\x' + code.padStart(2, '0') : '\\u' + code.padStart(4, '0');
    });
}

function milliseconds(ms) {
  if (ms === undefined || ms === null) return '';
  return (ms >= 1 ? ms.toFixed(2) : ms.toFixed(3)) + ' ms';
}

function bytes(count) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    ++unit;
  }
  return (unit === 0 ? String(Math.round(count)) : count.toFixed(2)) + ' ' + units[unit];
}

function integer(count) {
  return Math.round(count).toLocaleString('en-US');
}

function perCent(share, digits = 0) {
  return (100 * share).toFixed(digits) + '%';
}

function counted(count, noun) {
  return integer(count) + ' ' + noun + (count === 1 ? '' : 's');
}

/** element('p', {class: 'muted'}, 'text', child, ...); children that are null are left out. */
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, '');
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  for (const child of children) {
    if (child !== null && child !== undefined) made.append(child);
  }
  return made;
}

/** The same in SVG. */
function shape(name, attributes, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
