// A text that a spreadsheet would run as a formula is kept from it; numbers stay numbers.
const csvField = (text) => {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.]+(e[+-]?\d+)?%?$/i.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
};

function csvOf(table) {
  const lines = [...table.querySelectorAll("tr")].map((row) => [...row.children].map((cell) => csvField(cell.dataset.raw ?? cell.textContent)).join(","));
  return `\ufeff${lines.join("\r\n")}\r\n`; // the mark tells spreadsheets that it is UTF-8
}

function wireTables() {
  document.querySelectorAll(".download").forEach((button) => {
    button.onclick = () => {
      const link = element("a");
      link.href = URL.createObjectURL(new Blob([csvOf(button.closest(".table").querySelector("table"))], { type: "text/csv" }));
      link.download = button.dataset.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    };
  });
  document.querySelectorAll(".all-rows").forEach((button) => {
    button.onclick = () => {
      button.closest(".table").querySelectorAll("tr.later").forEach((row) => { row.hidden = false; });
      button.remove();
    };
  });
  document.querySelectorAll(".table > .scroll").forEach(watchScroll);
}

// Tells a reader that there is more to the right, until that is seen.
function showCue(box) {
  const more = box.scrollWidth - box.clientWidth > 8 && box.scrollLeft + box.clientWidth < box.scrollWidth - 8;
  box.classList.toggle("more", more);
  box.parentElement.querySelector(":scope > .cue").hidden = !more;
}
const resized = new ResizeObserver((entries) => entries.forEach((entry) => showCue(entry.target)));
function watchScroll(box) {
  box.addEventListener("scroll", () => showCue(box), { passive: true });
  resized.observe(box);
}
