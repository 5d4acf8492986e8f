// Numbers and times as console/web/formats.py writes them.
const UNKNOWN = "—";
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const STEPS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

export function grouped(value, digits) {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function number(value) {
  const size = Math.abs(value);
  return grouped(value, size >= 100 || value === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

export function bytes(value) {
  let unit = 0;
  for (; Math.abs(value) >= 1024 && unit < UNITS.length - 1; unit += 1) value /= 1024;
  return `${grouped(value, unit ? 1 : 0)} ${UNITS[unit]}`;
}

export function percent(share) {
  if (share > 0 && share < 0.0005) return "<0.1%";
  if (share >= 0.9995 && share < 1) return ">99.9%";
  return `${grouped(share * 100, share === 0 || share === 1 ? 0 : 1)}%`;
}

export function duration(seconds) {
  if (seconds < 0) return `−${duration(-seconds)}`;
  if (seconds < 0.0995) return seconds ? `${(seconds * 1000).toFixed(0)} ms` : "0 s";
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  for (const [index, [unit, name]] of STEPS.slice(0, -1).entries()) {
    if (whole < unit) continue;
    const [lesser, lesserName] = STEPS[index + 1];
    const rest = Math.floor((whole % unit) / lesser);
    return `${Math.floor(whole / unit)} ${name}${rest ? ` ${rest} ${lesserName}` : ""}`;
  }
  return `${whole} s`;
}

export function relative(moment, now) {
  const seconds = (now - moment) / 1000;
  const away = Math.abs(seconds);
  if (away >= 30 * 86400) return moment.toISOString().slice(0, 10);
  if (away < 1) return "now";
  const [unit, name] = STEPS.find(([step]) => away >= step);
  const text = `${Math.floor(away / unit)} ${name}`;
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}

export function written(kind, value) {
  if (value === null || value === undefined) return UNKNOWN;
  switch (kind) {
    case "count": return grouped(Math.round(value), 0);
    case "bytes": return bytes(value);
    case "percent": return percent(value);
    case "duration": return duration(value);
    default: return number(value);
  }
}
