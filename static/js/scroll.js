// Brings a row into view inside its own scrolling list, so that the page around it stays where it is.
export function reveal(row, list, margin = 60) {
  const [place, frame] = [row.getBoundingClientRect(), list.getBoundingClientRect()];
  if (place.top < frame.top + margin) list.scrollTop -= frame.top + margin - place.top;
  else if (place.bottom > frame.bottom - margin) list.scrollTop += place.bottom - frame.bottom + margin;
}
