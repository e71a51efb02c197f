// Light and dark. style.css defines the colours; charts read them from here as canvas colours.

const kSeriesColours = 8;
const kNamedColours = ['ink', 'quiet', 'line', 'grid', 'surface', 'accent', 'bad', 'warn', 'good'];
let palette = null;

function read_palette() {
  const probe = element('span', {hidden: ''});
  document.body.append(probe);
  const read = name => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  palette = {series: [], heat: []};
  for (const name of kNamedColours) palette[name] = read(name);
  for (let i = 0; i < kSeriesColours; ++i) palette.series.push(read(`series-${i}`));
  for (let i = 0; i < 6; ++i) palette.heat.push(read(`heat-${i}`).match(/\d+/g).slice(0, 3).map(Number));
  palette.font = getComputedStyle(document.body).fontFamily;
  probe.remove();
}

function series_colour(index) {
  return palette.series[index % kSeriesColours];
}

// `share` from 0 to 1 along the heat map's scale, as [red, green, blue].
function heat_colour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (palette.heat.length - 1);
  const low = Math.min(Math.floor(at), palette.heat.length - 2);
  return palette.heat[low].map((value, i) => value + (palette.heat[low + 1][i] - value) * (at - low));
}

let chosen_theme = null;  // 'light', 'dark', or null for what the system prefers

function choose_theme(theme) {
  chosen_theme = theme;
  set_theme(theme);
}

function set_theme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  read_palette();
}

function is_dark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}
