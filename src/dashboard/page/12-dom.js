// Elements. Text reaches the page through text nodes alone, so what a run wrote never becomes markup.

// element('button', {class: 'x', 'aria-pressed': 'true', click: handler}, 'text', child...)
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(name, value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}

function by_id(id) {
  return document.getElementById(id);
}

// Writes only what differs: no layout, no flicker, and a selection of text survives.
function set_text(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function set_attribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

function set_hidden(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

// Replaces the children if what they are made from has changed. `make` returns a list of nodes.
function rebuild(node, source, make) {
  const text = JSON.stringify(source);
  if (node.quern_source === text) return false;
  node.quern_source = text;
  node.replaceChildren(...make());
  return true;
}

// Writes the texts of what is marked with data-value below a node, in their order.
function fill(node, texts) {
  node.querySelectorAll('[data-value]').forEach((place, i) => set_text(place, texts[i]));
}

// For people who do not see the charts.
function announce(text) {
  set_text(by_id('announcer'), text);
}

function remember(name, value) {
  try {
    localStorage.setItem(`quern.${name}`, value);
  } catch {
    // No storage, as on some file: pages: the choice lasts as long as the page.
  }
}

function remembered(name) {
  try {
    return localStorage.getItem(`quern.${name}`);
  } catch {
    return null;
  }
}
