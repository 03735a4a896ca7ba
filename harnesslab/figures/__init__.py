"""Core values to Plotly figures, as plain JSON."""
