// Tables as files. Text that a spreadsheet would interpret as a formula gets an apostrophe in front.

const FORMULA = /^[\s\u0000-\u001f]*[=+\-@\uff1d\uff0b\uff0d\uff20]/;

function csvCell(value) {
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  if (value === null) return "";
  const text = FORMULA.test(value) ? `'${value}` : String(value);
  return /[",;\n\r']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const toCsv = (rows) => `\ufeff${rows.map((row) => row.map(csvCell).join(",")).join("\r\n")}\r\n`;

function save(key) {
  const rows = key === "live" ? liveSheet() : key === "live-errors" ? errorSheet() : DATA.sheets[key];
  const address = URL.createObjectURL(new Blob([toCsv(rows)], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = `${{ live: CHOSEN, "live-errors": "errors" }[key] ?? key}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
