"""Where two traces part, and why.

`alignment` pairs their steps, `diagnosis` finds the cause by evidence, `comparison` puts both into one sentence. What
can be said of one boundary has a module of its own: `model_divergence`, `input_difference`, `boundary_findings`.
"""
