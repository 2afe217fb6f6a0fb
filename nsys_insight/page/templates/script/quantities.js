// Numbers in the format of the page: three digits, the largest unit that fits.
const TIMES = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
const grouped = (value, digits = 0) => value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });

function time(ns) {
  const size = Math.abs(ns);
  const [unit, divisor] = TIMES.find(([, least]) => size >= least) ?? TIMES[3];
  const digits = divisor === 1 && Number.isInteger(ns) ? 0 : between(2 - Math.floor(Math.log10(size / divisor || 1)), 1, 3);
  return `${grouped(ns / divisor, digits)} ${unit}`;
}
const count = (number, one, many = `${one}s`) => `${grouped(number)} ${number === 1 ? one : many}`;
