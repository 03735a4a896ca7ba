"""HarnessLab's own JSON lines, by numbered schemas: how a program brings a trace that no other format holds."""
